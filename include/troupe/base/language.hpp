// language: the requirements for the compiler of a program. Each public header includes it before
// all others.
#pragma once

// The name of a file that is missing ends the compilation: otherwise thousands of errors would
// follow, and none would name the cause.
#if __cplusplus < 202002L
#error \
    "troupe: it needs C++20: compile with -std=c++20 (CMake: target_compile_features(... cxx_std_20))"
#define TROUPE_IS_REFUSED 1
#elif !defined(__cpp_exceptions)
#error "troupe: it reports errors by exceptions: compile without -fno-exceptions"
#define TROUPE_IS_REFUSED 1
#elif defined(TROUPE_SANITIZED_THREAD) && !TROUPE_SANITIZED_THREAD
#if defined(__SANITIZE_THREAD__)
#define TROUPE_IS_REFUSED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TROUPE_IS_REFUSED 1
#endif
#endif
#if defined(TROUPE_IS_REFUSED)
#error \
    "troupe: ThreadSanitizer would report races that are none, since the library was built without it: use a build of the library for it (CMake: TROUPE_TSAN_PACKAGE, or TROUPE_SANITIZE=thread; docs/guide/start.md), or compile this program without -fsanitize=thread"
#endif
#endif
#if defined(TROUPE_IS_REFUSED)
#include <troupe: see the error above>
#endif
