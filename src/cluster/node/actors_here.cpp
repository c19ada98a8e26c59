// The actors that are on this node.
#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/node/node_state.hpp"

namespace troupe::cluster::parts {
namespace {

thread_local const state_ref* node_that_reads = nullptr;

}  // namespace

found_actor node_state::find(const address& what, bool behind) {
  found_actor found;
  if (!what.member.empty() && what.member != self_.id) return found;
  if (is_stopped_) return found;
  shard_state& state = shards_[what.shard];
  std::unique_lock held(state.mutex);
  if (behind && state.queued != 0) return found;
  if (!state.is_open || !owns(what.shard, state.fence)) return found;
  const auto known = state.actors.find({what.kind, what.key});
  if (known != state.actors.end()) {
    found.it = known->second;
  } else {
    found.it = what.kind->make(shared_from_this(), what, state.fence);
    state.actors.emplace(std::pair(what.kind, std::string_view(found.it->what.key)), found.it);
    found.is_new = true;
    counts_.actors.fetch_add(1, relaxed);
    counts_.created.fetch_add(1, relaxed);
  }
  found.it->used_ns.store(now_ns(), relaxed);
  counts_.local.fetch_add(1, relaxed);
  found.held = std::move(held);
  return found;
}

// Under the lock of its shard, or not: the constructor of its object has thrown.
void node_state::remove(activation& actor) noexcept {
  shard_state& state = shards_[actor.what.shard];
  std::shared_ptr<activation> gone;
  std::lock_guard held(state.mutex);
  const auto known = state.actors.find({actor.what.kind, actor.what.key});
  if (known == state.actors.end() || known->second.get() != &actor) return;
  gone = std::move(known->second);
  state.actors.erase(known);
  counts_.actors.fetch_sub(1, relaxed);
}

// Those that were idle for too long; and of too many, those that were used least recently.
void node_state::put_away_idle() {
  const std::int64_t now = now_ns(), idle_ns = chosen_.idle_max.count();
  std::int64_t used_before = now - idle_ns;
  if (const std::size_t all = counts_.actors.load(relaxed); all > chosen_.actors_max) {
    std::vector<std::int64_t> times;
    for (shard_state& state : shards_) {
      std::lock_guard held(state.mutex);
      for (const auto& [name, actor] : state.actors) times.push_back(actor->used_ns.load(relaxed));
    }
    if (times.size() > chosen_.actors_max) {
      const auto last =
          times.begin() + static_cast<std::ptrdiff_t>(times.size() - chosen_.actors_max - 1);
      std::ranges::nth_element(times, last);
      used_before = std::max(used_before, *last);
    }
  }
  for (shard_state& state : shards_) {
    std::vector<std::shared_ptr<activation>> gone;
    std::lock_guard held(state.mutex);
    std::erase_if(state.actors, [&](auto& entry) {
      if (entry.second.use_count() != 1 || entry.second->used_ns.load(relaxed) > used_before)
        return false;
      gone.push_back(std::move(entry.second));
      return true;
    });
    counts_.actors.fetch_sub(gone.size(), relaxed);
    counts_.put_away.fetch_add(gone.size(), relaxed);
  }
}

found_actor find_here(const state_ref& on, const address& what, bool behind) {
  return on->find(what, behind);
}
std::unique_lock<std::mutex> lock_shard(activation& actor) {
  return std::unique_lock(actor.node->lock_of(actor.what.shard));
}
void remove(activation& actor) noexcept { actor.node->remove(actor); }

bool is_owned(const activation& actor) noexcept {
  return actor.node->owns(actor.what.shard, actor.fence);
}
void check_owned(const activation& one) {
  if (!is_owned(one)) [[unlikely]]
    throw error(failure::unreachable,
                "troupe: cluster: this node lost the actor before its handler began");
}
void check_may_answer(const activation& one) {
  if (!is_owned(one)) [[unlikely]]
    throw answer_too_late();
}

runtime& runtime_of(const node_state& on) noexcept { return on.on(); }

reading_on::reading_on(const state_ref& on) noexcept
    : before_(std::exchange(node_that_reads, &on)) {}
reading_on::~reading_on() { node_that_reads = before_; }
const state_ref& read_on() {
  if (node_that_reads == nullptr)
    durable::parts::refuse("a ref of a cluster can be read only in messages of its nodes");
  return *node_that_reads;
}

const class_table& table_of(const node_state& on, const void* tag, const char* name) {
  const class_table* const found = on.find_kind(tag);
  if (found == nullptr)
    throw usage_error(std::string("troupe: cluster: the node was not given the class ") + name);
  return *found;
}
const class_table& table_of(const node_state& on, std::string_view name) {
  const class_table* const found = on.find_kind(name);
  if (found == nullptr)
    durable::parts::refuse("the ref is of a class that this node was not given");
  return *found;
}

std::uint32_t shard_of(std::string_view kind, std::string_view key) noexcept {
  std::uint64_t mixed = durable::fingerprint_of(kind) ^ (durable::fingerprint_of(key) * 3);
  mixed = (mixed ^ (mixed >> 32)) * 0x9E3779B97F4A7C15u;
  return static_cast<std::uint32_t>(mixed >> 54);  // 10 bits
}

}  // namespace troupe::cluster::parts
