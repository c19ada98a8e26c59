// invariant: stops the program on a bug of ours or a broken precondition.
//
// An invariant is cited by its label, from the head comment of the class. Failures of the outside
// world are never invariants: they are values or typed exceptions (base/error.hpp).
#pragma once

namespace troupe::base {

[[noreturn]] void fail_invariant(const char* condition, const char* label, const char* file,
                                 int line) noexcept;

}  // namespace troupe::base

// Always on: for checks that are cheap, or whose failure would cost users their data.
#define TROUPE_REQUIRE(condition, label) \
  ((condition) ? void() : ::troupe::base::fail_invariant(#condition, label, __FILE__, __LINE__))

// Only in checked builds: for checks on the path of a message.
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
#define TROUPE_INVARIANT(condition, label) TROUPE_REQUIRE(condition, label)
#else
#define TROUPE_INVARIANT(condition, label) static_cast<void>(0)
#endif
