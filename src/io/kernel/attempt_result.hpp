// attempt_result: the result of a system call, as the result of an operation. Inline for the reason
// in message_calls.hpp.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "troupe/base/platform.hpp"
#include "troupe/io/operations/operation.hpp"

namespace troupe::io {

// Repeats calls that a signal interrupts. The limit is generous: one signal for each call is a lot.
template <class Call>
TROUPE_INLINE std::ptrdiff_t uninterrupted(Call call) noexcept {
  constexpr int interruptions_max = 1000;
  std::ptrdiff_t result = call();
  for (int i = 1; result == -EINTR && i < interruptions_max; ++i) [[unlikely]] result = call();
  return result;
}

inline bool would_block(std::ptrdiff_t result) noexcept { return result == -EAGAIN; }

inline bool finish(operation& operation, std::ptrdiff_t result) noexcept {
  operation.result = result > INT32_MAX ? INT32_MAX : static_cast<int>(result);
  return true;
}

}  // namespace troupe::io
