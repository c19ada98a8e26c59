#include "durable/state/actors.hpp"

#include <limits>

#include "base/invariant.hpp"

namespace troupe::durable::parts {
namespace {

bool is_waiting(const activation& actor) noexcept { return actor.asks != 0 || actor.asked != 0; }

}  // namespace

activation* actors::find(const kind_table& kind, std::string_view key) const noexcept {
  const auto known = all_.find({&kind, key});
  return known == all_.end() ? nullptr : known->second.get();
}

activation& actors::add(const kind_table& kind, const std::string& key, std::uint32_t shard,
                        std::int64_t now_ns) {
  auto actor = std::make_unique<activation>(kind, key, shard);
  activation& added = *actor;
  const bool is_new =
      all_.emplace(std::pair(&kind, std::string_view(added.key)), std::move(actor)).second;
  TROUPE_REQUIRE(is_new, "A3");
  link(added, now_ns);
  return added;
}

void actors::begin_run(activation& actor) noexcept {
  unlink(actor);
  actor.runs = true;
  ready_.push_back(actor);
}

void actors::end_run(activation& actor, std::int64_t now_ns) noexcept {
  TROUPE_INVARIANT(actor.runs, "A1");
  actor.runs = false;
  link(actor, now_ns);
}

activation* actors::take_ready() noexcept {
  activation* const taken = ready_.first();
  if (taken != nullptr) {
    ready_.remove(*taken);
    taken->in_a_row = 0;
  }
  return taken;
}

void actors::end_runner() noexcept {
  TROUPE_INVARIANT(runners_ > 0, "A4");
  --runners_;
}

void actors::link(activation& actor, std::int64_t now_ns) noexcept {
  actor.used_ns = now_ns;
  by_use_.push_back(actor);
}

void actors::unlink(activation& actor) noexcept {
  TROUPE_INVARIANT(!actor.runs, "A1");
  by_use_.remove(actor);
}

void actors::let_go(activation& actor) {
  if (actor.it != nullptr) gone_.push_back(std::move(actor.it));
  actor.it = nullptr;
}

// It leaves memory.
void actors::leave(activation& actor) {
  unlink(actor);
  let_go(actor);
}

void actors::unload(std::size_t most, std::int64_t used_before_ns, std::uint64_t stored) {
  constexpr std::size_t looks_max = 64;
  std::size_t kept = 0;
  for (activation* actor = by_use_.first(); actor != nullptr && most > 0;) {
    if (actor->used_ns > used_before_ns) return;
    activation* const next = by_use_.next(*actor);
    if (actor->changed_with <= stored && !is_waiting(*actor) && !actor->refused) {
      TROUPE_INVARIANT(!actor->runs && actor->waits.empty(), "A1");
      if (actor->it != nullptr) ++unloaded_;
      leave(*actor);
      all_.erase({&actor->kind, std::string_view(actor->key)});
      --most;
    } else if (++kept == looks_max) {
      return;
    }
    actor = next;
  }
}

void actors::make_room(std::size_t added, std::uint64_t stored) {
  const std::size_t wanted = all_.size() + added;
  if (wanted > most_) unload(wanted - most_, std::numeric_limits<std::int64_t>::max(), stored);
}

void actors::drop(const shard_set& lost) {
  std::erase_if(all_, [&](const auto& each) {
    activation& actor = *each.second;
    if (!lost[actor.shard] || actor.runs || is_waiting(actor)) return false;
    leave(actor);
    return true;
  });
}

}  // namespace troupe::durable::parts
