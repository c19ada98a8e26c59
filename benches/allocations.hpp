// allocations: the work of the rows context/*, the same for all contestants. README.md says what
// each measures.
//
// An `Arena` has: allocate(bytes); discard(), which ends everything that was allocated; and the
// types text, numbers and table, with make<T>(args...), which makes one of them in the arena's
// memory, to be ended by discard() as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "measure.hpp"

namespace allocations {

using measure::result;
using measure::stopwatch;

// ---- allocate: 16 to 256 bytes, discarded a thousand at a time ----

inline constexpr std::size_t batch = 1'000;

// The same sizes each time, chosen beforehand: choosing one would take longer than allocating.
inline std::array<std::size_t, batch> make_sizes() {
  std::array<std::size_t, batch> sizes;
  std::size_t bytes = 16;
  for (std::size_t& one : sizes) one = std::exchange(bytes, 16 + (bytes * 5 + 48) % 241);
  return sizes;
}

template <class Arena>
result allocate(std::uint64_t size) {
  const std::array<std::size_t, batch> sizes = make_sizes();
  Arena arena;
  result r;
  const stopwatch watch;
  for (std::uint64_t done = 0; done < size; done += batch) {
    for (const std::size_t bytes : sizes) {
      void* memory = arena.allocate(bytes);
      asm volatile("" : "+r"(memory) : : "memory");
      if (memory != nullptr) ++r.check;
    }
    arena.discard();
  }
  r.value = watch.ns_per(size);
  return r;
}

// ---- request: 200 small objects, then all are discarded ----

template <class Arena>
result request(std::uint64_t size) {
  Arena arena;
  result r;
  const stopwatch watch;
  for (std::uint64_t i = 0; i < size; ++i) {
    auto& headers = arena.template make<typename Arena::table>();
    for (int k = 0; k < 20; ++k) {
      auto& name = arena.template make<typename Arena::text>(
          "a header's name, longer than a string holds itself");
      name.back() = static_cast<char>('a' + k);
      headers.emplace(name, k);
    }
    std::uint64_t sum = 0;
    for (int k = 0; k < 80; ++k) {
      auto& line = arena.template make<typename Arena::text>(static_cast<std::size_t>(20 + k), 'x');
      auto& found = arena.template make<typename Arena::numbers>();
      for (int n = 0; n < 8; ++n) found.push_back(n + k);
      sum += line.size() + static_cast<std::uint64_t>(found.back());
    }
    r.check += sum == 80 * 20 + 79 * 80 + 7 * 80 && headers.size() == 20 ? 1 : 0;
    arena.discard();
  }
  r.value = watch.ns_per(size);
  return r;
}

}  // namespace allocations
