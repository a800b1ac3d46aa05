#include "integration/recorder.h"

#include <cpprest/http_listener.h>

#include <algorithm>
#include <condition_variable>
#include <queue>
#include <thread>

namespace weir::test {
namespace {

using web::http::http_request;
using web::http::experimental::listener::http_listener;

// Free now; nobody else on a test machine takes ports by number.
std::uint16_t free_port() { return port_of(bind_loopback()); }

}  // namespace

struct Recorder::Listener {
  explicit Listener(Recorder& owner)
      : http("http://0.0.0.0:" + std::to_string(owner.port_)), recorder(owner) {
    http.support([this](http_request request) { take(std::move(request)); });
    http.open().get();
  }

  ~Listener() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    replies.join();
    http.close().wait();
  }

  struct Due {
    Instant at;
    http_request request;
    std::size_t arrival;
    int status;
    friend bool operator>(const Due& a, const Due& b) { return a.at > b.at; }
  };

  void take(http_request request) {
    const std::string path = request.relative_uri().path();
    const std::size_t arrival =
        recorder.note(path, request.relative_uri().query(), request.remote_address());
    const Reply reply = recorder.behaviour_(path);
    if (reply.after == Span{0}) return answer(request, arrival, reply.status);
    const std::lock_guard lock(mutex);
    due.push({std::chrono::steady_clock::now() + reply.after, request, arrival, reply.status});
    changed.notify_all();
  }

  void answer(const http_request& request, std::size_t arrival, int status) {
    recorder.ended(arrival);
    request.reply(static_cast<web::http::status_code>(status), "recorded\n")
        .then([](const pplx::task<void>& sent) {
          try {
            sent.get();
          } catch (const std::exception&) {  // whoever asked has left
          }
        });
  }

  // Those that take their time; the rest at once when we stop.
  void run() {
    std::unique_lock lock(mutex);
    while (!stopping || !due.empty()) {
      if (due.empty()) {
        changed.wait(lock);
      } else if (!stopping && due.top().at > std::chrono::steady_clock::now()) {
        changed.wait_until(lock, due.top().at);
      } else {
        const Due next = due.top();
        due.pop();
        lock.unlock();
        answer(next.request, next.arrival, next.status);
        lock.lock();
      }
    }
  }

  http_listener http;
  Recorder& recorder;
  std::mutex mutex;
  std::condition_variable changed;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due;  // guarded by mutex
  bool stopping = false;                                           // guarded by mutex
  std::thread replies{[this] { run(); }};
};

Recorder::Recorder(Behaviour behaviour)
    : behaviour_(std::move(behaviour)),
      port_(free_port()),
      listener_(std::make_unique<Listener>(*this)) {}

Recorder::~Recorder() = default;

std::size_t Recorder::note(const std::string& path, const std::string& query,
                           const std::string& peer) {
  const std::lock_guard lock(mutex_);
  arrivals_.push_back({.path = path,
                       .replica = query.substr(0, query.find('.')),
                       .at = std::chrono::steady_clock::now(),
                       .wall = std::chrono::system_clock::now(),
                       .ended = {}});
  peers_.push_back(peer);
  ++requests_[path][query];
  return arrivals_.size() - 1;
}

void Recorder::ended(std::size_t arrival) {
  const std::lock_guard lock(mutex_);
  arrivals_[arrival].ended = std::chrono::steady_clock::now();
}

std::vector<Arrival> Recorder::arrivals(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  std::vector<Arrival> some;
  for (const Arrival& arrival : arrivals_) {
    if (path.empty() || arrival.path == path) some.push_back(arrival);
  }
  return some;
}

std::size_t Recorder::count(const std::string& path) const { return arrivals(path).size(); }

bool Recorder::idle() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(arrivals_.begin(), arrivals_.end(),
                     [](const Arrival& arrival) { return arrival.ended.has_value(); });
}

std::set<std::string> Recorder::peers(Instant since) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> peers;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    if (arrivals_[i].at >= since) peers.insert(peers_[i]);
  }
  return peers;
}

int Recorder::repeated(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(path);
  if (found == requests_.end()) return 0;
  int repeated = 0;
  for (const auto& request : found->second) repeated += request.second - 1;
  return repeated;
}

}  // namespace weir::test
