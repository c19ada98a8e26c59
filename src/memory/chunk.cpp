#include "memory/chunk.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace troupe::memory {

void* map_chunk() {
  // Twice the size, then the ends cut off: mmap promises no alignment beyond a page.
  void* raw = ::mmap(nullptr, 2 * chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const auto aligned = (begin + chunk_bytes - 1) & ~(chunk_bytes - 1);
  if (aligned != begin) ::munmap(raw, aligned - begin);
  const auto end = begin + 2 * chunk_bytes;
  if (end != aligned + chunk_bytes) ::munmap(reinterpret_cast<void*>(aligned + chunk_bytes), end - aligned - chunk_bytes);
  void* chunk = reinterpret_cast<void*>(aligned);
  ::madvise(chunk, chunk_bytes, MADV_HUGEPAGE);  // a wish: small pages work too
  return chunk;
}

void unmap_chunk(void* chunk) noexcept { ::munmap(chunk, chunk_bytes); }

}  // namespace troupe::memory
