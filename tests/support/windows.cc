#include "tests/support/windows.h"

#include <thread>

namespace weir::test {

std::map<long, int> arrivals_by_window(const FakeUpstream& upstream, std::string_view target,
                                       std::chrono::seconds length) {
  std::map<long, int> counts;
  for (const Received& request : upstream.requests()) {
    if (target.empty() || request.target == target) ++counts[window_of(request.arrived, length)];
  }
  return counts;
}

RawClient asking(const WeirdProcess& weird, std::string_view target,
                 std::initializer_list<std::string_view> fields) {
  RawClient client(weird.port());
  std::string head = "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n";
  for (const std::string_view field : fields) head.append(field).append("\r\n");
  client.send(head + "\r\n");
  return client;
}

void wait_for_line(const WeirdProcess& weird, int length) {
  const Instant deadline = std::chrono::steady_clock::now() + patience;
  while (weird.metric("weir_waiting") != length) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw TimedOut("there were never " + std::to_string(length) + " in line:\n" +
                     weird.admin("/metrics").body);
    }
    std::this_thread::sleep_for(1ms);
  }
}

std::vector<RawClient> lined_up(const WeirdProcess& weird,
                                const std::vector<std::string>& targets) {
  const int before = static_cast<int>(weird.metric("weir_waiting"));
  std::vector<RawClient> clients;
  for (const std::string& target : targets) {
    clients.push_back(asking(weird, target));
    wait_for_line(weird, before + static_cast<int>(clients.size()));
  }
  return clients;
}

}  // namespace weir::test
