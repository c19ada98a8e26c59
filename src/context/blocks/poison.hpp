// poison: marks memory for AddressSanitizer that must not be used now. Empty in other builds.
#pragma once

#include <cstddef>

#include "troupe/base/platform.hpp"
#if TROUPE_PLAIN_BLOCKS
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace troupe::contexts {

inline constexpr bool poisons = TROUPE_PLAIN_BLOCKS != 0;

inline void poison([[maybe_unused]] const void* begin,
                   [[maybe_unused]] std::size_t bytes) noexcept {
#if TROUPE_PLAIN_BLOCKS
  __asan_poison_memory_region(begin, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* begin,
                     [[maybe_unused]] std::size_t bytes) noexcept {
#if TROUPE_PLAIN_BLOCKS
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

// Memory in this range may refer to blocks of malloc, which are then not reported as leaks.
inline void add_leak_root([[maybe_unused]] const void* begin,
                          [[maybe_unused]] std::size_t bytes) noexcept {
#if TROUPE_PLAIN_BLOCKS
  __lsan_register_root_region(begin, bytes);
#endif
}
inline void remove_leak_root([[maybe_unused]] const void* begin,
                             [[maybe_unused]] std::size_t bytes) noexcept {
#if TROUPE_PLAIN_BLOCKS
  __lsan_unregister_root_region(begin, bytes);
#endif
}

}  // namespace troupe::contexts
