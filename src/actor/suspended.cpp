#include "actor/suspended.hpp"

#include <algorithm>
#include <optional>
#include <source_location>
#include <vector>

#include "actor/activation.hpp"
#include "actor/asleep.hpp"

namespace troupe::actor {
namespace {

// What is copied while the actor is held; texts are made afterwards.
struct awaited {
  std::source_location at;
  const char* what;
  const char* of;
  const void* asked;  // an actor, which may have gone
};
struct suspended_call {
  std::uint64_t id;
  const char* actor;
  const char* method;
  bool guarded;
  std::optional<awaited> waits_for;
};

awaited look_at(const tasks::wait& one) {
  const std::source_location at = tasks::location_of(one.who->awaits_at);
  if (const tasks::ask_link* asked = tasks::asked_by(one)) {
    return {at, asked->what, asked->method(nullptr, nullptr, message_act::describe), asked->asked};
  }
  return {at, one.act(const_cast<tasks::wait*>(&one), nullptr, message_act::describe), "", nullptr};
}

// Looks at actors one after the other, each while it is its own.
class looker {
 public:
  looker(system& home, std::size_t most, bool weak_too) noexcept : home_(home), most_(most), weak_too_(weak_too) {}

  void look_at_all() {
    // order: acquire  pairs with the runtime's store
    missed = home_.executors[0].load(std::memory_order_acquire)->for_each_quiet([this](sched::runnable& item) {
      if (item.type == &turn_type) look(static_cast<activation&>(item));
    });
    home_.waiting.for_each_flow([this](const tasks::flow& one) { look_at_parked(*static_cast<cell*>(one.actor)); });
    home_.waiting.for_each_reentrant([this](cell& actor) { look_at_parked(actor); });
    if (weak_too_) count += look_at_asleep(home_, [this](tasks::wait& sleep, message::handler act) { return add_asleep(sleep, act); });
    home_.guards.for_each([this](const cell& actor, const message& one) { add(actor, one, nullptr); });
  }

  std::vector<suspended_call> found;
  std::size_t count = 0;
  unsigned missed = 0;

 private:
  void look(const activation& of) {
    if (of.suspended != nullptr) look(*of.actor, *of.suspended);
    look_at_reentrant(*of.actor);
  }
  void look_at_reentrant(cell& actor) {
    if (!actor.type->reentrant) return;
    for (const tasks::flow* one = cell_extras::of(actor).flows; one != nullptr; one = one->next_call) look(actor, *one);
  }

  // Everything is the caller's: nobody runs the actor.
  void look(const cell& actor, const tasks::flow& flow) noexcept {
    if (!weak_too_ && flow.awaited != nullptr && flow.awaited->excused) return;
    add(actor, flow.call, &flow);
  }

  // A guarded message has no flow.
  void add(const cell& actor, const message& call, const tasks::flow* flow) noexcept {
    if (++count > most_) return;
    try {
      suspended_call line{id_of(actor), actor.type->name, call.act(nullptr, nullptr, message_act::describe), flow == nullptr, {}};
      if (flow != nullptr && flow->awaited != nullptr) line.waits_for = look_at(*flow->awaited);
      found.push_back(line);
    } catch (const std::bad_alloc&) {
      // It is counted.
    }
  }

  // Within the lock of the clock; it has no actor that could be numbered. False: that was enough, or too much.
  bool add_asleep(tasks::wait& sleep, message::handler act) noexcept try {
    if (found.size() >= most_) return false;
    found.push_back({0, spawned_type.name, act(nullptr, nullptr, message_act::describe), false, look_at(sleep)});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  void wake(cell& actor, activation& active) { home_.executor_of(actor).submit(active); }

  void look_at_parked(cell& actor) {
    mailbox box(actor.word);
    const std::uintptr_t seen = box.look();
    if (!mailbox::is_parked(seen) || !box.seize(seen)) return;
    activation& active = mailbox::activation_under(seen);
    look(active);
    if (!box.let_go(seen)) wake(actor, active);
  }

  system& home_;
  const std::size_t most_;
  const bool weak_too_;
};

std::string place_of(const std::source_location& where) {
  const std::string path = where.file_name();
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(where.line());
}

std::string line_of(const suspended_call& one, const system& home) {
  std::string text = "\n  " + std::string(one.actor) + (one.id == 0 ? "" : " #" + std::to_string(one.id)) + (one.guarded ? ": " : " in ") + one.method;
  if (one.guarded) return text + " waits for its predicate";
  if (!one.waits_for) return text + " waits for something of its own";
  const awaited& wait = *one.waits_for;
  text += " waits at " + place_of(wait.at) + " for " + wait.what + wait.of;
  const std::uint64_t asked = wait.asked == nullptr ? 0 : home.slots.find_number(wait.asked);
  if (asked != 0) text += " (#" + std::to_string(asked) + ")";
  return text;
}

}  // namespace

suspended_text describe_suspended(system& home, std::size_t most, bool weak_too) {
  looker all(home, most, weak_too);
  {
    std::lock_guard lock(home.looking);
    all.look_at_all();
  }
  std::ranges::sort(all.found, {}, &suspended_call::id);
  suspended_text text{{}, all.count, all.missed};
  for (const suspended_call& one : all.found) text.lines += line_of(one, home);
  if (all.count > all.found.size()) text.lines += "\n  and " + std::to_string(all.count - all.found.size()) + " more";
  return text;
}

}  // namespace troupe::actor
