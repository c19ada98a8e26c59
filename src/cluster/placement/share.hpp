// share: how many shards are the part of each member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::cluster {

// Of members that have so many shards now, in an order that all nodes know: how many shards the
// member with the index `member` is to have. The targets of all members are shard_count together,
// and differ by at most one. The members that have a larger part now keep it, if there are enough
// of them, so that as few shards move as possible. The result does not depend on the progress of
// the other members.
std::uint32_t target_of(const std::vector<std::uint32_t>& counts, std::size_t member);

}  // namespace troupe::cluster
