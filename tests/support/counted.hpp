// counted: counts the objects of a kind, so that a test sees when objects or frames are lost or
// destroyed twice.
#pragma once

#include <atomic>

namespace troupe::test {

// The count of the whole test program, whose tests run one after the other. It is zero at the end
// of each test.
inline std::atomic<int> live{0};
struct counted {
  counted() { ++live; }
  counted(const counted&) { ++live; }
  counted(counted&&) noexcept { ++live; }
  counted& operator=(const counted&) = default;
  ~counted() { --live; }
};

}  // namespace troupe::test
