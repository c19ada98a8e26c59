// owner_of: which context a pointer's memory belongs to.
//
// Context memory lies in chunks of 2 MiB, aligned to their size. The first page of a chunk says for
// each of its pages which context has it. One bit for each 2 MiB of the address space says where
// chunks are, so that any pointer may be asked about.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe {

class context;

namespace contexts {

inline constexpr std::size_t page_bytes = 4096;
inline constexpr unsigned page_shift = 12, chunk_shift = 21;
inline constexpr std::size_t chunk_bytes = std::size_t{1} << chunk_shift;
inline constexpr std::size_t chunk_pages = chunk_bytes / page_bytes;
#if defined(__aarch64__)
inline constexpr unsigned address_bits = 48;
#else
inline constexpr unsigned address_bits = 47;
#endif
inline constexpr std::uintptr_t chunks_max = std::uintptr_t{1} << (address_bits - chunk_shift);

// The first page of a chunk.
struct chunk_head {
  std::array<std::atomic<context*>, chunk_pages> owners;  // of each page; null: nobody's now
};
static_assert(sizeof(chunk_head) == page_bytes);

// A bit for each chunk of the address space: 8 MiB of zero pages that cost nothing until they are
// used. Read and written as atomics only.
using chunk_map = std::uint64_t[chunks_max / 64];
extern chunk_map chunks_here;

inline bool is_chunk(chunk_map& map, std::uintptr_t chunk) noexcept {
  if (chunk >= chunks_max) return false;
  // order: relaxed  whoever has a pointer into a chunk was given it after the chunk was entered
  return (std::atomic_ref(map[chunk / 64]).load(std::memory_order_relaxed) >> (chunk % 64) & 1) !=
         0;
}

// For what is not in a chunk, or behind the first 2 MiB of a larger one.
context* owner_elsewhere(std::uintptr_t address) noexcept;

}  // namespace contexts

// The context that has the memory at `address`, or null: what lies elsewhere, or was given back.
// Any thread, any pointer but one into memory that is being given back just now. What something
// persisted keeps belongs to its context still. Cost: about 1 ns: a mask and a load, after one bit.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     int elsewhere = 0;
//     if (troupe::owner_of(work->allocate(8)) != work.get()) std::abort();
//     if (troupe::owner_of(&elsewhere) != nullptr) std::abort();
inline context* owner_of(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!contexts::is_chunk(contexts::chunks_here, at >> contexts::chunk_shift))
    return contexts::owner_elsewhere(at);
  const auto* head =
      reinterpret_cast<const contexts::chunk_head*>(at & ~(contexts::chunk_bytes - 1));
  // order: relaxed  as above: the page was given out before the pointer was
  return head->owners[(at >> contexts::page_shift) % contexts::chunk_pages].load(
      std::memory_order_relaxed);
}

}  // namespace troupe
