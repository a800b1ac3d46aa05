#pragma once

// Writes many small pieces at the end of a string, which is grown ahead and cut to size behind
// them: an append() for each of the fifty pieces of a head costs more than all else about it.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out), size_(out.size()) { out_.resize(size_ + kAhead); }
  ~Writer() { out_.resize(size_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  template <class... Pieces>
  void put(const Pieces&... pieces) {
    (put_piece(pieces), ...);
  }

 private:
  static constexpr std::size_t kAhead = 1024;

  void put_piece(std::string_view text) {
    if (out_.size() - size_ < text.size()) out_.resize(2 * (size_ + text.size()));
    size_ += text.copy(out_.data() + size_, text.size());
  }

  void put_piece(std::int64_t number) {
    std::array<char, 20> digits;
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    put_piece({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }

  std::string& out_;
  std::size_t size_;  // of what was written; the rest of the string is room
};

}  // namespace weir::http
