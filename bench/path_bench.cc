// The steps of a request's way through the proxy, each alone.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "coordination/line.h"
#include "coordination/resource.h"
#include "daemon/system.h"
#include "proxy/headers.h"
#include "proxy/http/head.h"
#include "proxy/path.h"
#include "proxy/route.h"

namespace weir {
namespace {

constexpr int kRules = 10'000;
constexpr std::string_view kRequest =
    "GET /reports/monthly?of=november HTTP/1.1\r\nHost: reports.example.org\r\n"
    "User-Agent: curl/7.88.1\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef\r\nConnection: keep-alive\r\n\r\n";
constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Wed, 18 Nov 2026 12:00:00 GMT\r\n"
    "Content-Type: application/json\r\nContent-Length: 128\r\nConnection: keep-alive\r\n\r\n";

void read_head(benchmark::State& state, http::HeadReader::Kind kind, std::string_view text) {
  http::HeadReader reader(kind, http::Limits{});
  http::Head head;
  for (auto _ : state) benchmark::DoNotOptimize(reader.read(text, head));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

void parse_request(benchmark::State& state) {
  read_head(state, http::HeadReader::Kind::request, kRequest);
}
void parse_answer(benchmark::State& state) {
  read_head(state, http::HeadReader::Kind::response, kAnswer);
}

void canonical_path(benchmark::State& state, std::string_view target) {
  std::string scratch;
  for (auto _ : state) {
    benchmark::DoNotOptimize(canonical_target("GET", target, EscapedSlashes::reject, scratch));
  }
}
void path_as_sent(benchmark::State& state) {
  canonical_path(state, "/reports/monthly/summary?of=november");
}
void path_rewritten(benchmark::State& state) {
  canonical_path(state, "/reports//%6donthly/../monthly/./summary?of=november");
}

// The rules differ in their first segment, and the last of them matches.
void route(benchmark::State& state) {
  std::vector<Rule> rules;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    Rule rule;
    rule.name = "rule-" + std::to_string(i);
    rule.matches.push_back({"/section-" + std::to_string(i) + "/*", {"GET"}, ""});
    rules.push_back(std::move(rule));
  }
  const std::string path = "/section-" + std::to_string(state.range(0) - 1) + "/summary";
  Rule fallback;
  fallback.name = "default";
  const Routes routes(std::move(rules), std::move(fallback), TenantSource{});
  const RequestFacts facts{"GET", path, "reports.example.org", "127.0.0.1", {}};
  std::string scratch;
  for (auto _ : state) benchmark::DoNotOptimize(routes.route(facts, scratch));
}

void rewrite_request(benchmark::State& state) {
  http::HeadReader reader(http::HeadReader::Kind::request, http::Limits{});
  http::Head head;
  reader.read(kRequest, head);
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_request_head(out,
                        {head, head.target, "reports.example.org", "127.0.0.1", false, {}, {}});
    benchmark::DoNotOptimize(out.data());
  }
}

void rewrite_answer(benchmark::State& state) {
  http::HeadReader reader(http::HeadReader::Kind::response, http::Limits{});
  http::Head head;
  reader.read(kAnswer, head);
  const http::Framing framing = http::response_framing(head, "GET");
  std::string out, fields;
  Limit limit;
  limit.units = 100;
  for (auto _ : state) {
    out.clear();
    fields.clear();
    append_limit_fields(fields, LimitHeaders::ietf,
                        {"reports", limit, {58, std::chrono::seconds{12}}});
    append_answer_head(out, {head, framing, -1, 1, true, {}, {LimitHeaders::ietf, fields}});
    benchmark::DoNotOptimize(out.data());
  }
}

// In and out of a line in which so many wait already, as many tenants as that takes.
void line(benchmark::State& state, Queue order) {
  constexpr std::int64_t kTenants = 1'000;
  std::vector<Line::Place> waiting(static_cast<std::size_t>(state.range(0)));
  Line line;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    line.push(waiting[i], std::to_string(static_cast<std::int64_t>(i) % kTenants), order);
  }
  Line::Place place;
  for (auto _ : state) {
    line.push(place, "7", order);
    Line::Place* const next = line.pop();
    if (next != &place) {  // as many wait as before
      line.remove(place);
      line.push(*next, "7", order);
    }
  }
  while (line.pop()) {
  }
}
void line_fifo(benchmark::State& state) { line(state, Queue::fifo); }
void line_fair(benchmark::State& state) { line(state, Queue::fair); }

// As many names as are remembered, all of them in use, and as many again that there is no room for.
class Names {
 public:
  static constexpr std::size_t kMany = 100'000;

  Names() {
    Limit limit;
    limit.units = 1'000'000'000;
    limit.window = std::chrono::hours{24};
    policy_.set_limit(limit);
    for (std::size_t i = 0; i < 2 * kMany; ++i) names_.push_back("/reports/" + std::to_string(i));
    for (std::size_t i = 0; i < kMany; ++i) {
      const auto allowance = table_.find(policy_, names_[i])->allowance();
      Waiter waiter;
      allowance->take(allowance, waiter, Queue::fifo, clock_.now());
      waiter.permit.spend();
    }
  }
  // One after another, but not in the order in which they were made.
  void find(benchmark::State& state, std::size_t first) {
    std::size_t i = 0;
    for (auto _ : state) {
      i = (i + 61'803) % kMany;
      benchmark::DoNotOptimize(table_.find(policy_, names_[first + i]));
    }
  }

 private:
  SystemClock clock_;
  WaitingRoom room_;
  ForwardTime forward_;
  Policy policy_{"default"};
  ResourceTable table_{clock_, room_, [](Resource&) {}, kMany, &forward_};
  std::vector<std::string> names_;
};
void known_name(benchmark::State& state) { Names{}.find(state, 0); }
void name_without_room(benchmark::State& state) { Names{}.find(state, Names::kMany); }

BENCHMARK(known_name);
BENCHMARK(name_without_room);
BENCHMARK(parse_request);
BENCHMARK(parse_answer);
BENCHMARK(path_as_sent);
BENCHMARK(path_rewritten);
BENCHMARK(route)->Arg(1)->Arg(kRules);
BENCHMARK(rewrite_request);
BENCHMARK(rewrite_answer);
BENCHMARK(line_fifo)->Arg(1)->Arg(50'000);
BENCHMARK(line_fair)->Arg(1)->Arg(50'000);

}  // namespace
}  // namespace weir
