// platform: what differs between compilers and processors, in one place.
#pragma once

#include <cstddef>

// Whether small blocks are operator new's, so that AddressSanitizer sees their misuse. The build of
// the library decides, and its package tells programs (cmake/troupe_flags.cmake). A program's own
// flags cannot: the part that makes a message and the part that frees it may be compiled with
// different ones.
#ifndef TROUPE_PLAIN_BLOCKS
#define TROUPE_PLAIN_BLOCKS 0
#endif

// For functions that reach thread-locals: a coroutine may go on on another thread, and compilers
// keep the address of a thread-local across a suspension point when they can see it.
#define TROUPE_NOINLINE [[gnu::noinline]]
#define TROUPE_INLINE [[gnu::always_inline]] inline
// What reaches a thread-local, and may be inlined into a coroutine: clang may keep its address over
// a suspension (jobs/work.hpp).
#if defined(__clang__)
#define TROUPE_INLINE_HERE TROUPE_NOINLINE
#else
#define TROUPE_INLINE_HERE TROUPE_INLINE
#endif

// A function template that is declared to refuse what would be taken for it, and says why:
//   template <class Given TROUPE_SAYS(sentence)> void take(Given) TROUPE_REFUSED(sentence);
// Clang says the sentence of a deleted function, GCC shows it as a template's argument.
#if defined(__clang__) && __clang_major__ >= 19
#define TROUPE_SAYS(sentence)
#define TROUPE_REFUSED(sentence)                                                                \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") = \
      delete (sentence)_Pragma("clang diagnostic pop")
#else
#define TROUPE_SAYS(sentence) , ::troupe::base::said Sentence = sentence
#define TROUPE_REFUSED(sentence) = delete
#endif
// Declares an overload of `function` that refuses what no other one takes, a name of several
// functions among it, which no template parameter can take.
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
