#include "troupe/task/task.hpp"

#include <array>
#include <memory>
#include <new>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::tasks {

namespace {

#if !TROUPE_PLAIN_BLOCKS

// Frames that are too large for the block pool: each thread keeps the last ones that it freed, a
// few of each size. Rejected: larger blocks in the pool, whose batches would then have 256 KiB and
// more.
constexpr std::size_t step_bytes = 128, frame_bytes_max = 4096, kept_most = 16;
constexpr std::size_t classes = (frame_bytes_max - memory::block_bytes_max) / step_bytes;

struct kept_frames {
  memory::free_block* first = nullptr;
  std::size_t count = 0;
};
using kept_of_thread = std::array<kept_frames, classes>;
// null until the thread frees such a frame
constinit thread_local kept_of_thread* kept = nullptr;
// the thread's objects have been destroyed: frames are kept no longer
constinit thread_local bool ended = false;

struct thread_end {
  bool armed = false;
  ~thread_end() {
    ended = true;
    const std::unique_ptr<kept_of_thread> all(std::exchange(kept, nullptr));
    if (all == nullptr) return;
    for (kept_frames& frames : *all) {
      while (memory::free_block* const frame = frames.first) {
        frames.first = frame->next;
        ::operator delete(frame);
      }
    }
  }
};
thread_local thread_end at_thread_end;

// False: the thread ends, or memory is out.
TROUPE_NOINLINE bool make_kept() noexcept {
  if (ended) return false;
  kept = new (std::nothrow) kept_of_thread{};
  at_thread_end.armed = kept != nullptr;
  return kept != nullptr;
}

// of frames that are larger than a block
constexpr bool is_kept(std::size_t bytes) noexcept { return bytes <= frame_bytes_max; }
constexpr std::size_t class_of(std::size_t bytes) noexcept {
  return (bytes - memory::block_bytes_max - 1) / step_bytes;
}

TROUPE_NOINLINE void* allocate_large(std::size_t bytes) {
  if (!is_kept(bytes)) return ::operator new(bytes);
  if (kept == nullptr || (*kept)[class_of(bytes)].first == nullptr)
    return ::operator new(memory::block_bytes_max + (class_of(bytes) + 1) * step_bytes);
  kept_frames& frames = (*kept)[class_of(bytes)];
  memory::free_block* const frame = frames.first;
  frames.first = frame->next;
  --frames.count;
  return frame;
}

TROUPE_NOINLINE void deallocate_large(void* frame, std::size_t bytes) noexcept {
  if (!is_kept(bytes) || (kept == nullptr && !make_kept()) ||
      (*kept)[class_of(bytes)].count == kept_most)
    return ::operator delete(frame);
  kept_frames& frames = (*kept)[class_of(bytes)];
  frames.first = ::new (frame) memory::free_block{frames.first};
  ++frames.count;
}

#else

constexpr auto allocate_large = &memory::allocate;
constexpr auto deallocate_large = &memory::deallocate;

#endif

}  // namespace

TROUPE_NOINLINE void* allocate_frame(std::size_t bytes) {
  return bytes <= memory::block_bytes_max ? memory::allocate(bytes) : allocate_large(bytes);
}

TROUPE_NOINLINE void deallocate_frame(void* frame, std::size_t bytes) noexcept {
  bytes <= memory::block_bytes_max ? memory::deallocate(frame, bytes)
                                   : deallocate_large(frame, bytes);
}

void throw_not_begun() { throw cancelled("troupe: task: its call was cancelled before it began"); }

}  // namespace troupe::tasks
