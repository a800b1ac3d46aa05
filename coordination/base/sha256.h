#pragma once

// SHA-256 (FIPS 180-4) for names too long to be keys. A pure function; not meant for secrets.

#include <array>
#include <string_view>

namespace weir {

// The digest in lower-case hexadecimal.
std::array<char, 64> sha256_hex(std::string_view message);

}  // namespace weir
