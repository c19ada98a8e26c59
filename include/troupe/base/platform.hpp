// platform: what differs between compilers and processors, in one place.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TROUPE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_ASAN 1
#endif
#endif
#ifndef TROUPE_ASAN
#define TROUPE_ASAN 0
#endif

// For functions that reach thread-locals: a coroutine may go on on another thread, and compilers keep
// the address of a thread-local across a suspension point when they can see it.
#define TROUPE_NOINLINE [[gnu::noinline]]
#define TROUPE_INLINE [[gnu::always_inline]] inline

namespace troupe::base {

// Two lines, since processors fetch lines in pairs.
inline constexpr std::size_t line_bytes = 128;

inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace troupe::base
