#include "troupe/durable/storage.hpp"

#include "troupe/base/error.hpp"

namespace troupe::durable {

task<std::uint64_t> storage::reserve_orders() {
  throw usage_error("troupe: durable: " + name() + " is no storage of a cluster");
  co_return 0;
}

void storage::act_for(std::vector<std::uint32_t>) {}

}  // namespace troupe::durable
