// The simulation, from the command line:
//
//   simulation --seeds N [--from S]        runs N seeds and says what was reached
//   simulation --seed S [--trace]          runs one again, exactly as before
//   simulation --bugs [--seeds N]          each deliberate bug must be caught within N seeds
//   simulation ... --bug NAME              with that bug
//   simulation --use [--seed S]            how much of a limit is used under demand, and by whom
//
// Exit code 1: a check failed (or, with --bugs, did not), or something was never reached.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/simulation/simulation.h"
#include "tests/simulation/use.h"

namespace {

using namespace weir::sim;

struct Arguments {
  std::uint64_t from = 1, seeds = 400;
  Bug bug = Bug::none;
  Trace trace = Trace::off;
  enum class What { run, one, bugs, use } what = What::run;
};

Arguments parse(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string name = values[i];
    const char* const value = i + 1 < count ? values[i + 1] : "";
    if (name == "--trace") {
      arguments.trace = Trace::on;
    } else if (name == "--bugs") {
      arguments.what = Arguments::What::bugs;
    } else if (name == "--use") {
      arguments.what = Arguments::What::use;
    } else if (name == "--bug" && bug_named(value)) {
      arguments.bug = *bug_named(value);
      ++i;
    } else if (name == "--seed") {
      arguments.what = Arguments::What::one;
      arguments.from = std::strtoull(value, nullptr, 10);
      ++i;
    } else if (name == "--from" || name == "--seeds") {
      (name == "--from" ? arguments.from : arguments.seeds) = std::strtoull(value, nullptr, 10);
      ++i;
    } else {
      std::fprintf(
          stderr,
          "simulation: %s %s?\n"
          "usage: simulation [--from S] [--seeds N] [--bug NAME] | --seed S [--trace] | --bugs |\n"
          "       --use\n",
          name.c_str(), value);
      std::exit(2);
    }
  }
  return arguments;
}

void tell(std::uint64_t seed, Bug bug, const Result& result) {
  std::printf("FAILED %s: %s\n  again: simulation --seed %llu", result.violation->check.c_str(),
              result.violation->text.c_str(), static_cast<unsigned long long>(seed));
  if (bug != Bug::none) std::printf(" --bug %s", std::string(name_of(bug)).c_str());
  std::printf("\n");
}

int run_one(const Arguments& arguments) {
  const Result result = simulate(arguments.from, arguments.bug, arguments.trace);
  std::printf(
      "seed %llu: %llu arrivals, %llu revisions, %llu messages, %.0f virtual s, digest "
      "%016llx\n",
      static_cast<unsigned long long>(arguments.from),
      static_cast<unsigned long long>(result.reached.arrivals),
      static_cast<unsigned long long>(result.revisions),
      static_cast<unsigned long long>(result.messages), result.virtual_seconds,
      static_cast<unsigned long long>(result.digest));
  if (!result.violation) return 0;
  tell(arguments.from, arguments.bug, result);
  return 1;
}

bool reached_all(const Reached& reached) {
  const std::pair<const char*, std::uint64_t> needed[] = {
      {"claim lost", reached.conflict},
      {"unknown found applied", reached.found_applied},
      {"unknown found absent", reached.found_absent},
      {"lease lost", reached.lease_lost},
      {"window rolled with waiters", reached.rolled_with_waiters},
      {"overflow used", reached.overflow},
  };
  bool all = true;
  for (const auto& [name, times] : needed) {
    std::printf("  %-28s %llu\n", name, static_cast<unsigned long long>(times));
    if (times > 0) continue;
    std::printf("FAILED never reached: %s\n", name);
    all = false;
  }
  return all;
}

int run_many(const Arguments& arguments) {
  Reached reached;
  double virtual_seconds = 0;
  std::uint64_t messages = 0, failed = 0;
  std::map<std::string, int> checks;
  for (std::uint64_t i = 0; i < arguments.seeds; ++i) {
    const std::uint64_t seed = arguments.from + i;
    const Result result = simulate(seed, arguments.bug, Trace::off);
    reached.add(result.reached);
    virtual_seconds += result.virtual_seconds;
    messages += result.messages;
    // Replaying is of use only if it is exact.
    if (i % 50 == 0 && simulate(seed, arguments.bug, Trace::off).digest != result.digest) {
      std::printf("FAILED seed %llu is not the same twice\n",
                  static_cast<unsigned long long>(seed));
      ++failed;
    }
    if (!result.violation) continue;
    ++checks[result.violation->check];
    if (++failed <= 10) tell(seed, arguments.bug, result);
  }
  std::printf("%llu seeds from %llu: %llu failed, %.0f virtual s, %llu messages to the store\n",
              static_cast<unsigned long long>(arguments.seeds),
              static_cast<unsigned long long>(arguments.from),
              static_cast<unsigned long long>(failed), virtual_seconds,
              static_cast<unsigned long long>(messages));
  for (const auto& [check, times] : checks) std::printf("  %s: %d\n", check.c_str(), times);
  std::printf("  arrivals %llu, waited %llu, refused %llu, left %llu, spoiled %llu, crashes %llu\n",
              static_cast<unsigned long long>(reached.arrivals),
              static_cast<unsigned long long>(reached.waited),
              static_cast<unsigned long long>(reached.refused),
              static_cast<unsigned long long>(reached.left),
              static_cast<unsigned long long>(reached.spoiled),
              static_cast<unsigned long long>(reached.crashes));
  const bool all = reached_all(reached);
  return failed == 0 && all ? 0 : 1;
}

// Each bug is tried on seed after seed until the check that is meant for it has failed.
int run_bugs(const Arguments& arguments) {
  int missed = 0;
  for (const BugName& bug : kBugs) {
    std::map<std::string, std::uint64_t> first;
    std::uint64_t tried = 0;
    while (tried < arguments.seeds && !first.contains(std::string(bug.check))) {
      const std::uint64_t seed = arguments.from + tried++;
      const Result result = simulate(seed, bug.bug, Trace::off);
      if (result.violation) first.try_emplace(result.violation->check, seed);
    }
    std::printf("%-30s", std::string(bug.name).c_str());
    if (!first.contains(std::string(bug.check))) {
      std::printf(" NOT CAUGHT by %s in %llu seeds", std::string(bug.check).c_str(),
                  static_cast<unsigned long long>(tried));
      ++missed;
    }
    for (const auto& [check, seed] : first) {
      std::printf(" %s (seed %llu)", check.c_str(), static_cast<unsigned long long>(seed));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

// With more demand than units: nearly all of them are used, and every replica gets a part.
int run_use(const Arguments& arguments) {
  int failed = 0;
  for (const UseCase& use_case : use_cases()) {
    const Use use = play(use_case, arguments.from);
    std::printf("%-24s %6.2f %%  of it", use_case.name.c_str(), use.used * 100);
    bool shared = true;
    for (const double share : use.shares) {
      std::printf(" %4.1f", share * 100);
      shared = shared && share * static_cast<double>(use.shares.size()) >= kLeastShare;
    }
    std::printf(" %%  %.3f messages per request\n",
                static_cast<double>(use.messages) / static_cast<double>(use.requests));
    if (use.violation) {
      std::printf("FAILED %s: %s\n", use.violation->check.c_str(), use.violation->text.c_str());
    }
    if (use.used < kLeastUse) std::printf("FAILED too little is used\n");
    if (!shared) std::printf("FAILED somebody gets too little\n");
    failed += use.violation || use.used < kLeastUse || !shared;
    std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  const Arguments arguments = parse(count, values);
  switch (arguments.what) {
    case Arguments::What::one:
      return run_one(arguments);
    case Arguments::What::bugs:
      return run_bugs(arguments);
    case Arguments::What::use:
      return run_use(arguments);
    case Arguments::What::run:
      break;
  }
  return run_many(arguments);
}
