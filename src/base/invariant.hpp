// invariant: stops the program on a bug of ours or a broken precondition.
//
// An invariant is cited by the label that the class's head gives it. The world's failures are never
// invariants: they are values or typed exceptions (base/error.hpp).
#pragma once

namespace troupe::base {

[[noreturn]] void fail_invariant(const char* condition, const char* label, const char* file,
                                 int line) noexcept;

}  // namespace troupe::base

// Always on: for what is cheap, or costs a user his data when it is broken.
#define TROUPE_REQUIRE(condition, label) \
  ((condition) ? void() : ::troupe::base::fail_invariant(#condition, label, __FILE__, __LINE__))

// Only in checked builds: for what stands on a message's way.
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
#define TROUPE_INVARIANT(condition, label) TROUPE_REQUIRE(condition, label)
#else
#define TROUPE_INVARIANT(condition, label) static_cast<void>(0)
#endif
