// counted: how many of a kind there are, so that objects and frames are neither lost nor destroyed
// twice.
#pragma once

#include <atomic>

namespace troupe::test {

// Of the whole test program, whose tests run one after the other: zero at the end of each.
inline std::atomic<int> live{0};
struct counted {
  counted() { ++live; }
  counted(const counted&) { ++live; }
  counted(counted&&) noexcept { ++live; }
  counted& operator=(const counted&) = default;
  ~counted() { --live; }
};

}  // namespace troupe::test
