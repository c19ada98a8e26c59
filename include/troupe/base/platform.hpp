// platform: the differences between compilers and processors.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>

// Whether small blocks come from operator new, so that AddressSanitizer sees their misuse. The
// build of the library decides this, and its package passes the decision to programs
// (cmake/troupe_flags.cmake). A program's own flags cannot decide it: the code that makes a message
// and the code that frees it may be compiled with different flags.
#ifndef TROUPE_PLAIN_BLOCKS
#define TROUPE_PLAIN_BLOCKS 0
#endif

// For functions that use thread-locals. A coroutine may continue on another thread, and compilers
// keep the address of a thread-local across a suspension if they can see its use.
#define TROUPE_NOINLINE [[gnu::noinline]]
#define TROUPE_INLINE [[gnu::always_inline]] inline
// For functions that use a thread-local and may be inlined into a coroutine: clang may keep the
// address across a suspension (jobs/work.hpp).
#if defined(__clang__)
#define TROUPE_INLINE_HERE TROUPE_NOINLINE
#else
#define TROUPE_INLINE_HERE TROUPE_INLINE
#endif

// Declares a function template that refuses arguments that look valid for `take`, and puts the
// reason into the compile error:
//   template <class Given TROUPE_SAYS(sentence)> void take(Given) TROUPE_REFUSED(sentence);
// Clang prints the sentence of a deleted function; GCC shows it as a template's argument.
#if defined(__clang__) && __clang_major__ >= 19
#define TROUPE_SAYS(sentence)
#define TROUPE_REFUSED(sentence)                                                                \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") = \
      delete (sentence)_Pragma("clang diagnostic pop")
#else
#define TROUPE_SAYS(sentence) , ::troupe::base::said Sentence = sentence
#define TROUPE_REFUSED(sentence) = delete
#endif
// Declares an overload of `function` that refuses all arguments that no other overload takes. One
// of these is the name of several functions, which no template parameter accepts.
#define TROUPE_REFUSE_REST(function, sentence) \
  template <int = 0 TROUPE_SAYS(sentence)>     \
  void function(...) TROUPE_REFUSED(sentence)

namespace troupe::base {

// A text that the compiler shows as a template's argument.
template <std::size_t Bytes>
struct said {
  consteval said(const char (&given)[Bytes]) {
    for (std::size_t i = 0; i < Bytes; ++i) text[i] = given[i];
  }
  char text[Bytes]{};
};

// Two cache lines, since processors fetch lines in pairs.
inline constexpr std::size_t line_bytes = 128;

inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace troupe::base
