#include "observe/numbers/sharded.hpp"

namespace troupe::observe {

std::size_t shard_here() noexcept {
  static constinit std::atomic<std::size_t> threads{0};
  // order: relaxed  any number will do
  thread_local const std::size_t own =
      threads.fetch_add(1, std::memory_order_relaxed) % number_shards;
  return own;
}

}  // namespace troupe::observe
