#include "actor/waits/long_waits.hpp"

#include <mutex>
#include <new>
#include <vector>

#include "actor/mailbox/activation.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/when.hpp"

namespace troupe::actor {
namespace {

// Looks at the waits of the tasks of each suspended call, including tasks side by side.
class marker {
 public:
  marker(std::uint32_t now, std::uint32_t before) noexcept : now_(now), before_(before) {}

  // The caller holds the actor.
  void look_at(const cell& actor, const tasks::async_call& call) noexcept try {
    pending_.assign(1, &call);
    while (!pending_.empty()) {
      tasks::suspension* const wait = pending_.back()->awaited;
      pending_.pop_back();
      if (wait != nullptr) mark(actor, call.call, *wait);
    }
  } catch (const std::bad_alloc&) {
    failed = true;
  }

  std::vector<long_wait> found;
  bool failed = false;

 private:
  void mark(const cell& actor, const message& call, tasks::suspension& wait) {
    if (wait.first_seen == 0) wait.first_seen = now_;
    if (const tasks::group* const all = tasks::group::of(wait)) {
      all->for_each_unfinished([this](const tasks::branch& child) { pending_.push_back(&child); });
    } else if (const tasks::side_wait* const aside = tasks::side_wait::of(wait)) {
      for (auto* side = aside->first(); side != nullptr; side = side->next_waited())
        pending_.push_back(side);
    } else if (wait.first_seen <= before_) {
      if (found.size() < long_waits_max && (wait.for_lock ? is_for_lock(wait) : is_ask(wait)))
        found.push_back({actor::look_at(actor, call, &wait), wait.first_seen, wait.for_lock});
    }
  }

  static bool is_ask(const tasks::suspension& wait) noexcept {
    const tasks::ask_link* const asked = tasks::asked_by(wait);
    return asked != nullptr && asked->kind == tasks::ask_link::subject::answer &&
           !tasks::awaited_by(wait)->resolved();
  }
  // A wait for a child of a scope is none: the child has a wait of its own.
  static bool is_for_lock(const tasks::suspension& wait) noexcept {
    tasks::lock_holder holder;
    return is_locked_out(wait, holder) && !holder.is_child;
  }

  const std::uint32_t now_, before_;
  std::vector<const tasks::async_call*> pending_;
};

}  // namespace

void look_at_waits(actor_system& system, std::uint32_t now, std::uint32_t before,
                   const std::function<void(const long_wait&)>& look) {
  marker all(now, before);
  {
    const actor_system::gate_guard gate(system);
    if (!gate.let_in()) return;
    std::lock_guard lock(system.looking);
    static_cast<void>(for_each_held(system, [&](const cell& actor, const tasks::async_call& call) {
      all.look_at(actor, call);
    }));
  }
  if (all.failed) throw std::bad_alloc();
  for (const long_wait& wait : all.found) look(wait);
}

}  // namespace troupe::actor
