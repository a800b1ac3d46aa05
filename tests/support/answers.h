#pragma once

// Answers for an upstream to give, and scripts for its connections.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fake_upstream.h"

namespace weir::test {

// With Content-Length. `extra` are field lines without their ends.
std::string answer(int status, std::string_view body,
                   std::initializer_list<std::string_view> extra = {});
std::string chunked_answer(std::initializer_list<std::string_view> chunks);

// Takes whole requests one after the other, keeps the connection, and answers each the same.
Script serve(std::string reply);
// ... or each as `reply` says.
Script serve(std::function<std::string(const Received&)> reply);

// Takes one whole request; then `misbehave`.
Script after_request(Script misbehave);
// Takes one whole request, sends `bytes` and closes, by FIN or by RST.
Script send_and_close(std::string bytes);
Script send_and_reset(std::string bytes);
// Takes a whole request, sends `bytes`, and then nothing more.
Script send_and_stall(std::string bytes);

// The first connection runs the first script and so on; the last one is for all that follow.
Script in_turn(std::vector<Script> scripts);

}  // namespace weir::test
