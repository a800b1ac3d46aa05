#pragma once

// Whether a test is built with a sanitizer, for bounds that hold without one only.

namespace weir::test {

// In a test built with a sanitizer `weird` is too: slower by far, and its memory says little.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace weir::test
