#include "integration/etcd.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/support/eventually.h"

namespace weir::test {
namespace {

const std::string claims_prefix = "/weir/v1/claims/";

}  // namespace

Etcd::Etcd(const Project& project) {
  for (const char* service : {"etcd1", "etcd2", "etcd3"}) {
    members_.push_back(project.container(service));
  }
}

std::string Etcd::endpoint(std::size_t member) const {
  const std::string address = members_.at(member).address("store");
  return address.empty() ? "" : "http://" + address + ":2379";
}

std::string Etcd::endpoints() const {
  std::string all;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string one = endpoint(i);
    if (!one.empty()) all += (all.empty() ? "" : ",") + one;
  }
  return all;
}

Ran Etcd::try_ctl(const std::string& endpoints, std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "--endpoints=" + endpoints);
  return run_program("/usr/bin/etcdctl", {.arguments = std::move(arguments)});
}

std::string Etcd::ctl(std::vector<std::string> arguments) const {
  const std::string what = arguments.at(0);
  const Ran ran = try_ctl(endpoints(), std::move(arguments));
  if (ran.code != 0) throw std::runtime_error("etcdctl " + what + ": " + ran.error);
  return ran.output;
}

void Etcd::wait_until_healthy() const {
  eventually("etcd is healthy", [this] {
    for (std::size_t i = 0; i < size(); ++i) {
      const std::string one = endpoint(i);
      if (one.empty() || try_ctl(one, {"endpoint", "health"}).code != 0) return false;
    }
    return true;
  });
}

std::string Etcd::id(std::size_t member) const {
  const std::string name = "etcd" + std::to_string(member + 1);
  const auto list = nlohmann::json::parse(ctl({"member", "list", "-w", "json"}));
  for (const auto& one : list.at("members")) {
    if (one.at("name") != name) continue;
    std::ostringstream text;
    text << std::hex << one.at("ID").get<std::uint64_t>();
    return text.str();
  }
  throw std::runtime_error("no member " + name);
}

std::size_t Etcd::leader() const {
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string one = endpoint(i);
    if (one.empty()) continue;
    const Ran ran = try_ctl(one, {"endpoint", "status", "-w", "json"});
    const auto told = nlohmann::json::parse(ran.output, nullptr, false);
    if (!told.is_array() || told.empty()) continue;
    const auto& status = told.at(0).at("Status");
    if (status.at("leader") == status.at("header").at("member_id")) return i;
  }
  throw std::runtime_error("no member of etcd leads");
}

void Etcd::move_leader(std::size_t to) const {
  // Only the leader itself may be asked.
  const Ran ran = try_ctl(endpoint(leader()), {"move-leader", id(to)});
  if (ran.code != 0) throw std::runtime_error("etcdctl move-leader: " + ran.error);
}

std::vector<std::string> Etcd::claims_of(const std::string& rule) const {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string one = endpoint(i);
    if (one.empty()) continue;
    // A member that stands still is not waited for, nor need this one hear of the others.
    std::istringstream lines(
        try_ctl(one, {"--command-timeout=1s", "--dial-timeout=1s", "get", "--prefix", "--keys-only",
                      "--consistency=s", claims_prefix + rule + ":"})
            .output);
    for (std::string key; std::getline(lines, key);) {
      if (!key.empty()) keys.push_back(key);
    }
  }
  return keys;
}

MostClaimed Etcd::most_claimed(const std::string& rule) const {
  const std::string prefix = claims_prefix + rule + ":";
  const std::string end = "/integration/end";
  ctl({"put", end, "here"});
  // Every change there ever was, in the order of revisions: what it was, the key, the value.
  ChildProcess watch("/usr/bin/etcdctl", {.arguments = {"--endpoints=" + endpoints(), "watch", "",
                                                        "--prefix", "--rev=1"}});
  eventually("all of etcd's history is read",
             [&] { return watch.standard_output().find(end + "\n") != std::string::npos; });
  MostClaimed most;
  std::map<std::string, int> units, now;  // by key; by window
  std::istringstream lines(watch.standard_output());
  std::string what, key, value;
  while (std::getline(lines, what) && std::getline(lines, key) && std::getline(lines, value)) {
    if (key.compare(0, prefix.size(), prefix) != 0) continue;
    const std::size_t at = key.find('@');
    const std::string window = key.substr(at + 1, key.rfind('/') - at - 1);
    now[window] -= units[key];
    units[key] = what == "PUT" ? nlohmann::json::parse(value).at("units").get<int>() : 0;
    now[window] += units[key];
    most[window] = std::max(most[window], now[window]);
  }
  return most;
}

}  // namespace weir::test
