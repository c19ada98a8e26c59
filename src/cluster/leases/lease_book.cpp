#include "cluster/leases/lease_book.hpp"

#include <algorithm>

#include "troupe/database/error.hpp"

namespace troupe::cluster {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Members that leave, and members whose leases have expired.
bool lease_book::drop_members(const renewal& renewal, nanoseconds now) {
  return std::erase_if(members, [&](const auto& member) {
           const bool is_self = member.first == renewal.self.id;
           return is_self ? renewal.leaves : member.second.until < now;
         }) != 0;
}

void lease_book::give(shard& row, const std::string& to) {
  row.owner = to;
  ++row.fence;
  row.changed = version + 1;
}

bool lease_book::free_shards(const renewal& renewal, bool members_differ) {
  std::array<std::uint64_t, shard_count> kept{};  // their fences, none of which is 0
  for (const held_shard& held : renewal.kept) kept.at(held.shard) = held.fence;
  bool differ = false;
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    shard& row = shards[i];
    if (row.owner.empty()) continue;
    const bool is_own = row.owner == renewal.self.id;
    const bool stays = is_own ? !renewal.leaves && kept[i] == row.fence
                              : !members_differ || members.contains(row.owner);
    if (stays) continue;
    give(row, {});
    differ = true;
  }
  return differ;
}

bool lease_book::take_shards(const renewal& renewal) {
  std::uint32_t left = renewal.leaves ? 0 : renewal.wanted;
  bool differ = false;
  for (shard& row : shards) {
    if (left == 0) break;
    if (!row.owner.empty()) continue;
    give(row, renewal.self.id);
    differ = true;
    --left;
  }
  return differ;
}

lease_view lease_book::apply(const renewal& renewal, nanoseconds now) {
  const auto before = members.find(renewal.self.id);
  const bool is_known = before != members.end();
  if (is_known && before->second.round > renewal.round)
    throw database::error(database::failure::conflict, 0,
                          "troupe: cluster: a later renewal of this node was here first",
                          database::rule::other, database::effect::none);
  const bool says_else = is_known && before->second.row.is_leaving != renewal.self.is_leaving;
  bool members_differ = drop_members(renewal, now);
  if (!renewal.leaves) {
    members_differ |= !is_known || says_else;
    const nanoseconds until = renewal.lease == forever ? nanoseconds::max() : now + renewal.lease;
    members[renewal.self.id] = {renewal.self, renewal.round, until};
  }
  const bool freed = free_shards(renewal, members_differ);
  const bool took = take_shards(renewal);
  const bool has_changed = members_differ || freed || took;
  if (has_changed) ++version;
  if (members_differ) members_changed = version;
  lease_view view = view_for(renewal, now);
  view.has_changed = has_changed;
  return view;
}

lease_view lease_book::view_for(const renewal& renewal, nanoseconds now) const {
  lease_view view;
  view.seen = version;
  if (members_changed > renewal.seen) view.members.emplace();
  for (const auto& [id, member] : members) {
    if (view.members) view.members->push_back(member.row);
    if (id != renewal.self.id && member.until != nanoseconds::max())
      view.next_end =
          std::min(view.next_end, std::chrono::duration_cast<milliseconds>(member.until - now));
  }
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    const shard& row = shards[i];
    if (row.owner == renewal.self.id) view.held.push_back({i, row.fence});
    if (row.changed > renewal.seen) view.changed.push_back({i, row.owner, row.fence});
  }
  return view;
}

}  // namespace troupe::cluster
