// platform: what differs between compilers and processors, in one place.
#pragma once

#include <cstddef>

// Whether small blocks are operator new's, so that AddressSanitizer sees their misuse. The build of the library
// decides, and its package tells programs (cmake/troupe_flags.cmake). A program's own flags cannot: the part that
// makes a message and the part that frees it may be compiled with different ones.
#ifndef TROUPE_PLAIN_BLOCKS
#define TROUPE_PLAIN_BLOCKS 0
#endif

// For functions that reach thread-locals: a coroutine may go on on another thread, and compilers keep
// the address of a thread-local across a suspension point when they can see it.
#define TROUPE_NOINLINE [[gnu::noinline]]
#define TROUPE_INLINE [[gnu::always_inline]] inline
// What reaches a thread-local, and may be inlined into a coroutine: clang may keep its address over a suspension (jobs/work.hpp).
#if defined(__clang__)
#define TROUPE_INLINE_HERE TROUPE_NOINLINE
#else
#define TROUPE_INLINE_HERE TROUPE_INLINE
#endif

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
