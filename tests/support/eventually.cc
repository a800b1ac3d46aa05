#include "tests/support/eventually.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir::test {

Span eventually(const std::string& what, const std::function<bool()>& condition, Span within) {
  const Instant began = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > began + within) {
      ADD_FAILURE() << "not within " << within.count() << " ms: " << what;
      break;
    }
    std::this_thread::sleep_for(10ms);
  }
  return std::chrono::duration_cast<Span>(std::chrono::steady_clock::now() - began);
}

void let_run(Span span) { std::this_thread::sleep_for(span); }

}  // namespace weir::test
