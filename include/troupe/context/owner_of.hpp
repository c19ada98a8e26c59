// owner_of: finds the context that owns the memory at a pointer.
//
// Context memory lies in chunks of 2 MiB, aligned to their size. The first page of a chunk says
// which context owns each of its pages. A bitmap with one bit for each 2 MiB of the address space
// says where chunks are: any pointer may be looked up. An allocation that needs more than one chunk
// gets several chunks in a row for itself, of which only the first begins with such a page; a
// second bitmap marks the others.
#pragma once

#include "troupe/base/language.hpp"

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
  std::array<std::atomic<context*>, chunk_pages> owners;  // of each page; null: no owner now
};
static_assert(sizeof(chunk_head) == page_bytes);

// One bit for each 2 MiB of the address space: set where a chunk with its first page lies. 8 MiB of
// zero pages that cost nothing until they are used. Accessed only as atomics.
using chunk_map = std::uint64_t[chunks_max / 64];
extern chunk_map chunks_here;

inline bool is_chunk(chunk_map& map, std::uintptr_t chunk) noexcept {
  if (chunk >= chunks_max) return false;
  // order: relaxed  a thread got its pointer into a chunk after the chunk was entered
  return (std::atomic_ref(map[chunk / 64]).load(std::memory_order_relaxed) >> (chunk % 64) & 1) !=
         0;
}

// The slow part of owner_of(): for an address that is in no chunk, or in one that the second bitmap
// marks.
context* owner_elsewhere(std::uintptr_t address) noexcept;

}  // namespace contexts

// The context that owns the memory at `address`; null if none does, or if the memory was given
// back. Memory that is kept by a persisted object still belongs to its context. Thread: any. Any
// pointer is allowed, except into memory that is being given back at this moment. Cost: about 1 ns:
// a mask and a load, after the test of one bit.
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
  // order: relaxed  as above: the page got its owner before the pointer existed
  return head->owners[(at >> contexts::page_shift) % contexts::chunk_pages].load(
      std::memory_order_relaxed);
}

}  // namespace troupe
