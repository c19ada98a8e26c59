#include "cluster/actors/local_actors.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/invariant.hpp"

namespace troupe::cluster::parts {

local_actors::local_actors(node_core& core) : core_(core) { shards_[own_shard].is_open = true; }

found_actor local_actors::find(const address& target, bool behind) {
  found_actor found;
  if (!target.member.empty() && target.member != core_.self().id) return found;
  if (core_.stage().has_left()) return found;
  shard_actors& shard = shards_[target.shard];
  std::unique_lock held(shard.mutex);
  if (behind && shard.queued != 0) return found;
  if (!shard.is_open || !core_.owns(target.shard, shard.fence)) return found;
  const auto known = shard.actors.find({target.kind, target.key});
  if (known != shard.actors.end()) {
    found.it = known->second;
    TROUPE_INVARIANT(found.it->fence == shard.fence, "N1");
  } else {
    found.it = target.kind->make(core_.node(), target, shard.fence);
    shard.actors.emplace(std::pair(target.kind, std::string_view(found.it->address.key)), found.it);
    found.is_new = true;
    counts_.actors.fetch_add(1, relaxed);
    counts_.created.fetch_add(1, relaxed);
  }
  found.it->used_ns.store(core_.now_ns(), relaxed);
  counts_.messages.add(1);
  found.held = std::move(held);
  return found;
}

// The constructor of its object has thrown.
void local_actors::remove(activation& actor) noexcept {
  shard_actors& shard = shards_[actor.address.shard];
  std::shared_ptr<activation> gone;
  std::lock_guard held(shard.mutex);
  const auto known = shard.actors.find({actor.address.kind, actor.address.key});
  if (known == shard.actors.end() || known->second.get() != &actor) return;
  gone = std::move(known->second);
  shard.actors.erase(known);
  counts_.actors.fetch_sub(1, relaxed);
}

// Actors that were used last before this time are unloaded.
std::int64_t local_actors::unload_before() {
  const std::int64_t idle_before = core_.now_ns() - core_.chosen().idle_max.count();
  const std::size_t actors_max = core_.chosen().actors_max;
  if (counts_.actors.load(relaxed) <= actors_max) return idle_before;
  std::vector<std::int64_t> times;
  for (shard_actors& shard : shards_) {
    std::lock_guard held(shard.mutex);
    for (const auto& [name, actor] : shard.actors) times.push_back(actor->used_ns.load(relaxed));
  }
  if (times.size() <= actors_max) return idle_before;
  const auto last = times.begin() + static_cast<std::ptrdiff_t>(times.size() - actors_max - 1);
  std::ranges::nth_element(times, last);
  return std::max(idle_before, *last);
}

void local_actors::unload_idle() {
  const std::int64_t used_before = unload_before();
  for (shard_actors& shard : shards_) {
    std::vector<std::shared_ptr<activation>> gone;
    std::lock_guard held(shard.mutex);
    std::erase_if(shard.actors, [&](auto& entry) {
      if (entry.second.use_count() != 1 || entry.second->used_ns.load(relaxed) > used_before)
        return false;
      gone.push_back(std::move(entry.second));
      return true;
    });
    counts_.actors.fetch_sub(gone.size(), relaxed);
    counts_.unloaded.fetch_add(gone.size(), relaxed);
  }
}

bool local_actors::rests(const shard_actors& shard) {
  return std::ranges::all_of(shard.actors,
                             [](const auto& entry) { return entry.second.use_count() == 1; });
}

// Under the lock of the shard. The actors end when `gone` does, without it.
void local_actors::drop(shard_actors& shard, actor_map& gone) noexcept {
  shard.is_open = false;
  gone.swap(shard.actors);
  counts_.actors.fetch_sub(gone.size(), relaxed);
}

void local_actors::open(const held_shard& shard) {
  shard_actors& state = shards_[shard.shard];
  std::lock_guard held(state.mutex);
  TROUPE_INVARIANT(state.actors.empty() || state.fence == shard.fence, "N1");
  state.is_open = true;
  state.fence = shard.fence;
}

void local_actors::close(std::uint32_t shard) noexcept {
  actor_map gone;
  std::lock_guard held(shards_[shard].mutex);
  drop(shards_[shard], gone);
}

bool local_actors::is_at_rest(std::uint32_t shard) noexcept {
  std::lock_guard held(shards_[shard].mutex);
  return rests(shards_[shard]);
}

bool local_actors::begin_hand_over(const held_shard& shard, bool closes) {
  shard_actors& state = shards_[shard.shard];
  std::lock_guard held(state.mutex);
  if (state.fence != shard.fence) return true;  // lost, and perhaps here again
  const bool is_at_rest = rests(state);
  if (is_at_rest || closes) state.is_open = false;
  return is_at_rest;
}

void local_actors::end_hand_over(const held_shard& shard, bool goes) noexcept {
  actor_map gone;
  shard_actors& state = shards_[shard.shard];
  std::lock_guard held(state.mutex);
  if (state.fence != shard.fence) return;
  if (!goes) {
    state.is_open = true;
    return;
  }
  TROUPE_INVARIANT(rests(state), "N2");
  drop(state, gone);
}

void local_actors::kill() noexcept {
  for (shard_actors& shard : shards_) {
    std::lock_guard held(shard.mutex);
    for (const auto& [name, actor] : shard.actors) actor->end();
  }
}

void local_actors::let_go() noexcept {
  for (shard_actors& shard : shards_) {
    actor_map gone;
    std::lock_guard held(shard.mutex);
    drop(shard, gone);
  }
}

namespace {

thread_local const state_ref* node_that_reads = nullptr;

}  // namespace

reading_on::reading_on(const state_ref& on) noexcept
    : before_(std::exchange(node_that_reads, &on)) {}
reading_on::~reading_on() { node_that_reads = before_; }
const state_ref& read_on() {
  if (node_that_reads == nullptr)
    durable::parts::refuse("a ref of a cluster can be read only in messages of its nodes");
  return *node_that_reads;
}

std::uint32_t shard_of(std::string_view kind, std::string_view key) noexcept {
  std::uint64_t mixed = durable::fingerprint_of(kind) ^ (durable::fingerprint_of(key) * 3);
  mixed = (mixed ^ (mixed >> 32)) * 0x9E3779B97F4A7C15u;
  return static_cast<std::uint32_t>(mixed >> 54);  // 10 bits
}

}  // namespace troupe::cluster::parts
