// owner_of: finds the context that owns the memory at a pointer.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>

#include "troupe/context/blocks/chunk_map.hpp"

namespace troupe {

// The context that owns the memory at `address`; null if none does, or if the memory was freed.
// Memory that is kept by a persisted object still belongs to its context. Thread: any. Any pointer
// is allowed, except into memory that is being freed at this moment. Cost: about 1 ns: a mask and a
// load, after the test of one bit.
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
  // order: relaxed  as in is_chunk: the page got its owner before the pointer existed
  return head->owners[(at >> contexts::page_shift) % contexts::chunk_pages].load(
      std::memory_order_relaxed);
}

}  // namespace troupe
