#include "cluster/placement/share.hpp"

#include "cluster/leases/lease_store.hpp"

namespace troupe::cluster {

std::uint32_t target_of(const std::vector<std::uint32_t>& counts, std::size_t member) {
  const auto members = static_cast<std::uint32_t>(counts.size());
  const std::uint32_t least = shard_count / members;
  const std::uint32_t larger = shard_count % members;  // so many members have one more
  std::uint32_t have_more = 0;
  std::uint32_t like_it_before = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool has_more = counts[i] > least;
    if (has_more) ++have_more;
    if (i < member && has_more == (counts[member] > least)) ++like_it_before;
  }
  const std::uint32_t first = counts[member] > least ? 0 : have_more;
  return first + like_it_before < larger ? least + 1 : least;
}

}  // namespace troupe::cluster
