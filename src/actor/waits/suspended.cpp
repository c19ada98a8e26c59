#include "actor/waits/suspended.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "actor/mailbox/activation.hpp"
#include "actor/spawned/spawned.hpp"
#include "actor/waits/hold_parked.hpp"
#include "task/timers/timers.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::actor {

suspended_call look_at(const cell& actor, const message& call, const tasks::suspension* wait) {
  suspended_call seen{
      id_of(actor), actor.type->name, call.act(nullptr, nullptr, message_act::describe), false, {}};
  if (wait == nullptr) return seen;
  seen.waits_for = look_at(*wait);
  seen.waits_for->first_seen = wait->first_seen;
  return seen;
}

namespace {

// One look at all suspended calls. A reentrant actor may have any number of them: it therefore
// stores where the look continues, while it is not held (optional_state::next_looked).
class look_at_calls {
 public:
  using function = std::function<void(cell&, const tasks::async_call&)>;
  look_at_calls(actor_system& system, const function& look)
      : system_(system), look_(look), number_(++system.looks) {}

  // The actors that wait on workers. The worker's lock is held for a number of calls only: one pass
  // after the other, until no such actor has more.
  void at_workers(not_held& missed) {
    // order: acquire  pairs with the runtime's store
    sched::executor& pool = *system_.executors[0].load(std::memory_order_acquire);
    bool more = false;
    const auto first = pool.for_each_quiet([&](sched::runnable& item) {
      if (item.type == system_.turns)
        more = at(static_cast<activation&>(item), calls_of_hold_max) || more;
    });
    missed.workers = first.threads;
    missed.in_flight = first.in_flight;
    while (std::exchange(more, false)) {
      const auto next = pool.for_each_quiet([&](sched::runnable& item) {
        if (item.type != system_.turns) return;
        auto& active = static_cast<activation&>(item);
        if (is_begun(*active.actor)) more = at(active, calls_of_hold_max) || more;
      });
      missed.workers = std::max(missed.workers, next.threads);
    }
  }

  // The caller holds the actor. True if it has more calls than that.
  bool at(activation& active, std::size_t most) {
    cell& actor = *active.actor;
    const bool begins = !is_begun(actor);
    if (begins && active.suspended != nullptr) look_(actor, *active.suspended);
    if (!actor.type->reentrant) return false;
    optional_state& optional = optional_state::of(actor);
    optional.looked_in = number_;
    if (begins) optional.next_looked = optional.async_calls.first();
    for (; optional.next_looked != nullptr; --most) {
      if (most == 0) return true;
      const tasks::async_call& call = *optional.next_looked;
      optional.next_looked = async_call_list::next(call);
      look_(actor, call);
    }
    return false;
  }

 private:
  bool is_begun(cell& actor) const noexcept {
    return actor.type->reentrant && optional_state::of(actor).looked_in == number_;
  }

  actor_system& system_;
  const function& look_;
  const std::uint32_t number_;
};

}  // namespace

not_held for_each_held(actor_system& system, const look_at_calls::function& look,
                       const std::function<bool(const cell&)>& wanted) {
  not_held missed;
  look_at_calls all(system, look);
  all.at_workers(missed);
  const auto hold = [&](cell& actor, waiting_lists::list_lock& listed, auto parked_as) {
    if (wanted && !wanted(actor)) return;
    const auto is_held = [&]() -> activation& {
      listed.unlock();  // S2: the actor is held now
      return parked_as();
    };
    const auto look_at_all = [&](activation& active) {
      static_cast<void>(all.at(active, SIZE_MAX));
    };
    const auto wake = [&](activation& active) { system.executor_of(actor).submit(active); };
    if (!hold_parked(mailbox(actor.word), is_held, look_at_all, wake)) ++missed.actors;
  };
  system.waiting.for_each_call([&](const tasks::async_call& call, auto& listed) {
    hold(*static_cast<cell*>(call.actor), listed,
         [&]() -> activation& { return waiting_lists::activation_of(call); });
  });
  system.waiting.for_each_reentrant([&](cell& actor, auto& listed) {
    hold(actor, listed, [&]() -> activation& { return *optional_state::of(actor).parked_as; });
  });
  return missed;
}

namespace {

// Looks at actors one after the other, each while this thread holds it.
class looker {
 public:
  looker(actor_system& system, std::size_t most, bool weak_too,
         std::span<const std::uint64_t> ids = {}) noexcept
      : system_(system), most_(most), weak_too_(weak_too), ids_(ids) {}

  void look_at_all() {
    missed = for_each_held(
        system_,
        [this](const cell& actor, const tasks::async_call& call) {
          if (is_wanted(actor)) add(actor, call);
        },
        [this](const cell& actor) { return is_wanted(actor); });
    if (weak_too_ && ids_.empty())
      count += look_at_asleep(
          system_,
          [this](const tasks::suspension& sleep, message::handler act) { add_asleep(sleep, act); },
          [this] { return has_room_for_asleep(); });
    system_.guards.for_each([this](const cell& actor, const message& pending) {
      if (is_wanted(actor)) add(actor, pending, nullptr);
    });
  }

  std::vector<suspended_call> found;
  std::size_t count = 0;
  not_held missed;

 private:
  bool is_wanted(const cell& actor) const noexcept {
    return ids_.empty() || std::ranges::binary_search(ids_, id_of(actor));
  }
  // The caller holds the actor: no other thread runs it.
  void add(const cell& actor, const tasks::async_call& call) noexcept {
    if (!weak_too_ && call.awaited != nullptr && call.awaited->excused) return;
    add(actor, call.call, &call);
  }

  // `call` is null for a guarded message.
  void add(const cell& actor, const message& asked, const tasks::async_call* call) noexcept {
    if (++count > most_) return;
    try {
      suspended_call line = look_at(actor, asked, call == nullptr ? nullptr : call->awaited);
      line.guarded = call == nullptr;
      found.push_back(line);
    } catch (const std::bad_alloc&) {
      // It is counted, but not listed.
    }
  }

  // Before the next piece of a look at sleeping tasks: makes room, so that nothing is allocated
  // while the lock of the clock is held. False: stop looking, since there are enough lines, or
  // memory is out.
  bool has_room_for_asleep() noexcept try {
    if (found.size() >= most_) return false;
    if (found.capacity() - found.size() < tasks::timers::piece_max)
      found.reserve(2 * found.capacity() + tasks::timers::piece_max);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // The caller holds the lock of the clock. A sleeping task has no actor, hence no id.
  void add_asleep(const tasks::suspension& sleep, message::handler act) {
    if (found.size() < most_)
      found.push_back({0, spawned_type.name, act(nullptr, nullptr, message_act::describe), false,
                       look_at(sleep)});
  }

  actor_system& system_;
  const std::size_t most_;
  const bool weak_too_;
  const std::span<const std::uint64_t> ids_;
};

}  // namespace

namespace {

std::string quoted_name_of(const suspended_call& call, const actor_system& system) {
  const std::string name = system.names.find(call.id);
  return name.empty() ? name : " \"" + name + "\"";
}

}  // namespace

std::string line_of(const suspended_call& call, const actor_system& system) {
  std::string text =
      "\n  " + std::string(call.actor) +
      (call.id == 0 ? "" : " #" + std::to_string(call.id) + quoted_name_of(call, system)) +
      (call.guarded ? ": " : " in ") + call.method;
  if (call.guarded) return text + " waits for its predicate";
  if (!call.waits_for) return text + " waits for something of its own";
  const awaited& wait = *call.waits_for;
  text += " waits" + (wait.at.line() == 0 ? std::string() : " at " + place_of(wait.at)) + " for " +
          wait.event + wait.method;
  const std::uint64_t asked = wait.asked == nullptr ? 0 : system.slots.find_number(wait.asked);
  if (asked != 0) text += " (#" + std::to_string(asked) + ")";
  if (wait.held_since.line() != 0) text += " since " + place_of(wait.held_since);
  if (wait.lock != 0) text += " (lock " + std::to_string(wait.lock) + ")";
  return text;
}

namespace {

// Locks whose holders took them in the same line get numbers, in the order of these calls.
void tell_locks_apart(std::span<suspended_call> calls) {
  std::map<std::string, std::vector<const void*>> holders;
  std::vector<std::pair<std::vector<const void*>*, awaited*>> waits;
  for (suspended_call& call : calls) {
    if (!call.waits_for || call.waits_for->held_by == nullptr) continue;
    awaited& wait = *call.waits_for;
    std::vector<const void*>& alike = holders[wait.method + place_of(wait.held_since)];
    auto found = std::ranges::find(alike, wait.held_by);
    if (found == alike.end()) found = alike.insert(found, wait.held_by);
    wait.lock = static_cast<unsigned>(found - alike.begin()) + 1;
    waits.emplace_back(&alike, &wait);
  }
  for (const auto& [alike, wait] : waits) {
    if (alike->size() == 1) wait->lock = 0;
  }
}

}  // namespace

std::string describe(const not_held& missed) {
  const auto counted = [](unsigned n, const char* noun) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
  };
  if (missed.any() == 0) return {};
  std::string text = "\n  not looked at: ";
  if (missed.workers != 0)
    text += "what waits at " + counted(missed.workers, "worker") + ", busy at each try";
  if (missed.workers != 0 && missed.actors != 0) text += "; ";
  if (missed.actors != 0)
    text += counted(missed.actors, "suspended actor") + ", sent mail at each try";
  return text;
}

suspended_calls find_suspended(actor_system& system, std::size_t most,
                               std::span<const std::uint64_t> ids) {
  looker all(system, most, true, ids);
  std::lock_guard lock(system.looking);
  all.look_at_all();
  return {std::move(all.found), all.count, all.missed};
}

suspended_text describe_suspended(actor_system& system, std::size_t most, bool weak_too) {
  looker all(system, most, weak_too);
  {
    std::lock_guard lock(system.looking);
    all.look_at_all();
  }
  std::ranges::sort(all.found, {}, &suspended_call::id);
  tell_locks_apart(all.found);
  suspended_text text{{}, all.count, all.missed};
  for (const suspended_call& call : all.found) text.lines += line_of(call, system);
  if (all.count > all.found.size())
    text.lines += "\n  and " + std::to_string(all.count - all.found.size()) + " more";
  return text;
}

}  // namespace troupe::actor
