#include "observe/numbers/sharded.hpp"

#include "base/thread_name.hpp"

namespace troupe::observe {

std::size_t shard_here() noexcept { return base::worker_number % number_shards; }

}  // namespace troupe::observe
