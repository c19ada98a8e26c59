#include "troupe/task/task.hpp"

#include "troupe/memory/block_pool.hpp"

namespace troupe::tasks {

TROUPE_NOINLINE void* allocate_frame(std::size_t bytes) { return memory::allocate(bytes); }
TROUPE_NOINLINE void deallocate_frame(void* frame, std::size_t bytes) noexcept { memory::deallocate(frame, bytes); }

}  // namespace troupe::tasks
