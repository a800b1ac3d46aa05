#include "integration/load.h"

#include <cpprest/http_client.h>

#include <atomic>
#include <nlohmann/json.hpp>

namespace weir::test {
namespace {

using web::http::client::http_client;
using web::http::client::http_client_config;

// Of all loads, so that no request is ever taken for another.
std::atomic<long> requests{0};

// One who was turned away or cut off asks again a little later.
constexpr Span turned_away{50};

http_client_config patient_for(Span timeout) {
  http_client_config config;
  config.set_timeout(timeout);
  return config;
}

Page ask(http_client& client, const std::string& method, const std::string& path,
         const pplx::cancellation_token& token) {
  web::http::http_request request(method);
  request.set_request_uri(path);
  if (method != "GET") request.set_body("something to keep");
  try {
    const auto response = client.request(request, token).get();
    return {response.status_code(), response.extract_string(true).get()};
  } catch (const std::exception&) {  // refused, cut off, too late, or we are stopping
    return {};
  }
}

std::string reason_of(const Page& page) {
  if (page.status < 400) return "";
  const auto told = nlohmann::json::parse(page.body, nullptr, false);
  return told.is_object() ? told.value("reason", "") : "";
}

}  // namespace

void Doors::set(const std::string& door, const std::string& url) {
  const std::lock_guard lock(mutex_);
  urls_[door] = url;
}

std::string Doors::url(const std::string& door) const {
  const std::lock_guard lock(mutex_);
  const auto found = urls_.find(door);
  return found == urls_.end() ? "" : found->second;
}

struct Load::Stopping {
  pplx::cancellation_token_source source;
};

Load::Load(const Doors& doors, std::vector<Stream> streams)
    : doors_(doors), streams_(std::move(streams)), stopping_(std::make_unique<Stopping>()) {
  // The doors take turns, so that no replica is asked much before the others.
  for (const Stream& stream : streams_) {
    for (int i = 0; i < stream.clients; ++i) {
      for (const std::string& door : stream.doors) {
        clients_.emplace_back(&Load::run, this, std::cref(stream), door);
      }
    }
  }
}

Load::~Load() { stop(); }

void Load::stop() {
  stopping_->source.cancel();
  for (std::thread& client : clients_) client.join();
  clients_.clear();
}

void Load::run(const Stream& stream, const std::string& door) {
  const pplx::cancellation_token token = stopping_->source.get_token();
  std::string url;
  std::unique_ptr<http_client> client;
  while (!token.is_canceled()) {
    if (const std::string now = doors_.url(door); now != url) {
      url = now;
      client = url.empty() ? nullptr : std::make_unique<http_client>(url, patient_for(120s));
    }
    if (!client) {
      std::this_thread::sleep_for(turned_away);
      continue;
    }
    const Instant asked = std::chrono::steady_clock::now();
    const Page page = ask(*client, stream.method,
                          stream.path + "?" + door + "." + std::to_string(++requests), token);
    if (token.is_canceled()) return;
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back({stream.path, door, page.status, reason_of(page), asked,
                          std::chrono::steady_clock::now()});
    }
    std::this_thread::sleep_for(page.status == 200 ? stream.pause : turned_away);
  }
}

std::vector<Answered> Load::answers(const std::string& path, Instant since) const {
  const std::lock_guard lock(mutex_);
  std::vector<Answered> some;
  for (const Answered& answer : answers_) {
    if ((path.empty() || answer.path == path) && answer.at >= since) some.push_back(answer);
  }
  return some;
}

std::string Load::failures(const std::string& path, Instant since) const {
  std::map<std::string, int> counts;
  for (const Answered& answer : answers(path, since)) {
    if (answer.status == 200) continue;
    ++counts[answer.door + " " + std::to_string(answer.status) + " " + answer.reason];
  }
  std::string text;
  for (const auto& [what, count] : counts) text += std::to_string(count) + " × " + what + "; ";
  return text;
}

Page get(const std::string& url, Span timeout) {
  http_client client(url, patient_for(timeout));
  return ask(client, "GET", "", pplx::cancellation_token::none());
}

}  // namespace weir::test
