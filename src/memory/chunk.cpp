#include "memory/chunk.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace troupe::memory {

namespace {

void* map(std::size_t count, bool huge_pages) {
  if (count > SIZE_MAX / chunk_bytes - 1) throw std::bad_alloc();
  const std::size_t bytes = count * chunk_bytes;
  // Maps one chunk more and cuts off the ends: mmap promises no alignment beyond a page.
  void* raw = ::mmap(nullptr, bytes + chunk_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const auto aligned = (begin + chunk_bytes - 1) & ~(chunk_bytes - 1);
  if (aligned != begin) ::munmap(raw, aligned - begin);
  const auto end = begin + bytes + chunk_bytes;
  if (end != aligned + bytes)
    ::munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  void* chunks = reinterpret_cast<void*>(aligned);
  if (huge_pages) ::madvise(chunks, bytes, MADV_HUGEPAGE);  // only a hint: small pages also work
  return chunks;
}

}  // namespace

void* map_chunk(std::size_t before) { return map(1, before >= small_chunks); }
void* map_chunks(std::size_t count) { return map(count, true); }

void unmap_chunk(void* chunk) noexcept { unmap_chunks(chunk, 1); }
void unmap_chunks(void* chunks, std::size_t count) noexcept {
  ::munmap(chunks, count * chunk_bytes);
}

}  // namespace troupe::memory
