#include "actor/turn/running.hpp"

#include <mutex>

#include "base/thread_name.hpp"
#include "troupe/base/intrusive_list.hpp"

namespace troupe::actor {
namespace {

// Never destroyed: threads may end after the program's static objects.
struct thread_list {
  std::mutex mutex;
  base::intrusive_list<thread_turn_state, &thread_turn_state::link> states;
  static thread_list& get() {
    static constinit thread_list instance;  // trivially destructible
    return instance;
  }
};

struct listing {
  thread_turn_state* state = nullptr;
  ~listing() {
    if (state == nullptr) return;
    thread_list& list = thread_list::get();
    std::lock_guard lock(list.mutex);
    // order: relaxed  guarded by the mutex, or the thread's own
    if (const actor_system* system = state->system.load(std::memory_order_relaxed))
      state->own.move_to(&system->elsewhere);
    list.states.remove(*state);
  }
};
thread_local listing listing_of_thread;

const char* describe_procedure(message*, void*, message_act) { return "post"; }

}  // namespace

void enter_system(thread_turn_state& of_thread, const actor_system& system) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  if (!of_thread.listed) {
    list.states.push_front(of_thread);
    listing_of_thread.state = &of_thread;
    of_thread.listed = true;
  }
  // order: relaxed  guarded by the mutex, or the thread's own
  const actor_system* before = of_thread.system.load(std::memory_order_relaxed);
  of_thread.own.move_to(before == nullptr ? nullptr : &before->elsewhere);
  of_thread.worker = base::worker_number;
  // order: relaxed  as above
  of_thread.system.store(&system, std::memory_order_relaxed);
}

void leave_system(const actor_system& system) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (thread_turn_state& state : list.states) {
    // order: relaxed (both)  guarded by the mutex; no turn of the system runs any longer
    if (state.system.load(std::memory_order_relaxed) != &system) continue;
    state.system.store(nullptr, std::memory_order_relaxed);
    state.own.move_to(nullptr);
  }
}

std::int64_t suspended_turns(const actor_system& system) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  // Exact when no turn runs: the count of outstanding work published the numbers.
  std::int64_t sum = system.elsewhere[counted::suspended];
  for (const thread_turn_state& state : list.states) {
    // order: relaxed  guarded by the mutex, or the thread's own
    if (state.system.load(std::memory_order_relaxed) == &system)
      sum += state.own[counted::suspended];
  }
  return sum;
}

void for_each_count(const actor_system& system,
                    const std::function<void(unsigned worker, const counts& its)>& look) {
  look(0, system.elsewhere);
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (const thread_turn_state& state : list.states) {
    // order: relaxed  guarded by the mutex, or the thread's own
    if (state.system.load(std::memory_order_relaxed) == &system) look(state.worker, state.own);
  }
}

void count_elsewhere(actor_system& system, counted what, std::int64_t n) noexcept {
  system.elsewhere.add_shared(what, n);
}

inside_procedure::inside_procedure(const actor_system& system,
                                   message::handler describes) noexcept {
  thread_turn_state& state = current_turn();
  // order: relaxed (all)  for running_handlers, a snapshot
  if (state.system.load(std::memory_order_relaxed) != &system) enter_system(state, system);
  state.method.store(describes == nullptr ? &describe_procedure : describes,
                     std::memory_order_relaxed);
  state.in_procedure.store(true, std::memory_order_relaxed);
}

inside_procedure::~inside_procedure() {
  // order: relaxed  for running_handlers, a snapshot
  current_turn().in_procedure.store(false, std::memory_order_relaxed);
}

bool is_running() noexcept {
  // order: relaxed  the thread's own
  return current_cell() != nullptr || current_turn().in_procedure.load(std::memory_order_relaxed);
}

bool is_running(const actor_system& system) noexcept {
  if (const cell* actor = current_cell()) return &actor_system::of(*actor) == &system;
  const thread_turn_state& state = current_turn();
  // order: relaxed  the thread's own
  return state.in_procedure.load(std::memory_order_relaxed) &&
         state.system.load(std::memory_order_relaxed) == &system;
}

void notice_stop(const actor_system& system) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (thread_turn_state& state : list.states) {
    // order: relaxed  a turn that begins at this instant may overwrite it, and then sees the stop
    // at its end only
    if (state.system.load(std::memory_order_relaxed) == &system)
      state.unusual.store(true, std::memory_order_relaxed);
  }
}

std::string running_handlers(const actor_system& system) {
  std::string names;
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (const thread_turn_state& state : list.states) {
    // order: relaxed  a snapshot
    const message::handler method = state.method.load(std::memory_order_relaxed);
    // order: relaxed  a snapshot
    const cell* actor = state.actor.load(std::memory_order_relaxed);
    // order: relaxed  a snapshot
    const bool inside = actor != nullptr || state.in_procedure.load(std::memory_order_relaxed);
    if (state.system.load(std::memory_order_relaxed) != &system || !inside || method == nullptr)
      continue;
    if (!names.empty()) names += "; ";
    names += method(nullptr, nullptr, message_act::describe);
    // order: relaxed  a snapshot
    if (const char* what = state.what.load(std::memory_order_relaxed);
        what != nullptr && actor == nullptr)
      names += std::string(": ") + what;
    // The actor may have gone by now.
    if (const std::uint64_t id = actor == nullptr ? 0 : system.slots.find_number(actor); id != 0)
      names += " (#" + std::to_string(id) + ")";
  }
  return names.empty() ? "none" : names;
}

}  // namespace troupe::actor
