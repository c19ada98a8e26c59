#include "cluster/leases/lease_book.hpp"

#include <algorithm>

#include "troupe/database/error.hpp"

namespace troupe::cluster {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Members that leave, and members whose leases have expired.
bool lease_book::drop_members(const renewal& what, nanoseconds now) {
  return std::erase_if(members, [&](const auto& member) {
           const bool is_self = member.first == what.self.id;
           return is_self ? what.leaves : member.second.until < now;
         }) != 0;
}

void lease_book::give(shard& row, const std::string& to) {
  row.owner = to;
  ++row.fence;
  row.changed = version + 1;
}

bool lease_book::free_shards(const renewal& what, bool members_differ) {
  std::array<std::uint64_t, shard_count> kept{};  // their fences, none of which is 0
  for (const held_shard& held : what.kept) kept.at(held.shard) = held.fence;
  bool differ = false;
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    shard& row = shards[i];
    if (row.owner.empty()) continue;
    const bool is_own = row.owner == what.self.id;
    const bool stays = is_own ? !what.leaves && kept[i] == row.fence
                              : !members_differ || members.contains(row.owner);
    if (stays) continue;
    give(row, {});
    differ = true;
  }
  return differ;
}

bool lease_book::take_shards(const renewal& what) {
  std::uint32_t left = what.leaves ? 0 : what.wanted;
  bool differ = false;
  for (shard& row : shards) {
    if (left == 0) break;
    if (!row.owner.empty()) continue;
    give(row, what.self.id);
    differ = true;
    --left;
  }
  return differ;
}

lease_view lease_book::apply(const renewal& what, nanoseconds now) {
  const auto before = members.find(what.self.id);
  const bool is_known = before != members.end();
  if (is_known && before->second.round > what.round)
    throw database::error(database::failure::conflict, 0,
                          "troupe: cluster: a later renewal of this node was here first",
                          database::rule::other, database::effect::none);
  const bool says_else = is_known && before->second.row.is_leaving != what.self.is_leaving;
  bool members_differ = drop_members(what, now);
  if (!what.leaves) {
    members_differ |= !is_known || says_else;
    const nanoseconds until = what.lease == forever ? nanoseconds::max() : now + what.lease;
    members[what.self.id] = {what.self, what.round, until};
  }
  const bool freed = free_shards(what, members_differ);
  const bool took = take_shards(what);
  const bool has_changed = members_differ || freed || took;
  if (has_changed) ++version;
  if (members_differ) members_changed = version;
  lease_view view = view_for(what, now);
  view.has_changed = has_changed;
  return view;
}

lease_view lease_book::view_for(const renewal& what, nanoseconds now) const {
  lease_view view;
  view.seen = version;
  if (members_changed > what.seen) view.members.emplace();
  for (const auto& [id, member] : members) {
    if (view.members) view.members->push_back(member.row);
    if (id != what.self.id && member.until != nanoseconds::max())
      view.next_end =
          std::min(view.next_end, std::chrono::duration_cast<milliseconds>(member.until - now));
  }
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    const shard& row = shards[i];
    if (row.owner == what.self.id) view.held.push_back({i, row.fence});
    if (row.changed > what.seen) view.changed.push_back({i, row.owner, row.fence});
  }
  return view;
}

}  // namespace troupe::cluster
