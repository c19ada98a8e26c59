// copies: how many builds of the library are in one process, and whether they may be.
//
// Two shared objects may each have the library in them. If they show its names, the linker gives
// both the same thread's worker, tables of types and the like (docs/decisions/loading.md). Builds
// that differ would read each other's objects wrongly.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace troupe::copies {

// A build: major, minor and patch number, and how it was built.
struct build {
  std::uint16_t major = 0, minor = 0, patch = 0;
  bool is_checked = false, is_sanitized = false;

  static build here() noexcept;
  // Never 0.
  std::uint64_t word() const noexcept;
  static build of(std::uint64_t word) noexcept;
  std::string text() const;
};

// The word of the first build that made a runtime; 0: none has. Copies that share anything share
// this object as well.
inline constinit std::atomic<std::uint64_t> first{0};

// Throws usage_error if a build that differs shares objects with this one.
void check();

}  // namespace troupe::copies
