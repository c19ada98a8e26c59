// The async calls of an actor: how a turn is suspended, resumed and cancelled; and the links
// between asks, by which an ask that would wait for itself is refused.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <span>

#include "actor/state/awaited.hpp"
#include "actor/state/kept_failure.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/turn.hpp"
#include "observe/ring.hpp"
#include "task/running/actor_functions.hpp"
#include "task/running/running.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::actor {
namespace {

// A wait is over: the suspension itself is the urgent message that resumes its call. Any thread.
void go_on(void* actor, tasks::suspension& over) noexcept {
  deliver_urgent(*static_cast<cell*>(actor), over);
}

// The call has yielded: it resumes in the actor's next turn.
void go_on_later(tasks::suspension& over) noexcept {
  tasks::running_state& state = tasks::running_here();
  // order: relaxed  the turn's own
  over.next.store(reinterpret_cast<std::uintptr_t>(state.yielded), std::memory_order_relaxed);
  state.yielded = &over;
  state.unusual.store(true, std::memory_order_relaxed);  // order: relaxed  as above
}

// The call's coroutine has ended: gives its result and frees it.
void complete(tasks::async_call& done) noexcept {
  done.call.act(&done.call, nullptr, message_act::complete);
}

// For a story: also the line of the wait.
void tell_wait(const tasks::async_call& suspended) noexcept {
  observe::listener* const listener = observe::listener_here();
  if (listener == nullptr || suspended.awaited == nullptr) return;
  const awaited words = look_at(*suspended.awaited);
  listener->hear_wait(*listener, id_of(*static_cast<const cell*>(suspended.actor)), words.event,
                      words.method, words.at.file_name(), words.at.line());
}

TROUPE_NOINLINE void trace_part(const tasks::async_call& async_call, observe::event kind) noexcept {
  const char* description = async_call.call.act(nullptr, nullptr, message_act::describe);
  if (kind == observe::event::suspended) {
    description = async_call.awaited == nullptr
                      ? nullptr
                      : async_call.awaited->act(async_call.awaited, nullptr, message_act::describe);
    tell_wait(async_call);
  }
  observe::record(kind, description, id_of(*static_cast<const cell*>(async_call.actor)));
}

// Runs a part of the call: its start, or its loop after a resumption.
template <class Part>
void run(tasks::running_state& state, tasks::async_call& async_call, Part part) noexcept {
  state.running_call = &async_call;
  part();
  if (!async_call.done && observe::tracing()) [[unlikely]]
    trace_part(async_call, observe::event::suspended);
  tasks::running_here().running_call = nullptr;
}

// The call's loop, in a runtime that is traced.
TROUPE_NOINLINE void run_again_traced(tasks::async_call& async_call) noexcept {
  trace_part(async_call, observe::event::handle_begin);
  run(tasks::running_here(), async_call, [&] { async_call.loop(); });
  trace_part(async_call, observe::event::handle_end);
}

// Runs the call's loop until the call waits again. True when the call has ended.
TROUPE_INLINE bool run_again(tasks::async_call& async_call) noexcept {
  tasks::running_state& state = tasks::running_here();
  // A stop discards, and the end of a wait has resumed the call. It must not wait for anything
  // else, or it could run endlessly: it is therefore cancelled now.
  if (actor_system::of(*static_cast<cell*>(async_call.actor)).discarding()) [[unlikely]]
    async_call.cancelled = true;
  // order: relaxed  for running_handlers, a snapshot
  state.method.store(async_call.call.act, std::memory_order_relaxed);
  if (observe::tracing()) [[unlikely]] {
    run_again_traced(async_call);
    return async_call.done;
  }
  // A trace that begins meanwhile does not contain this part.
  state.running_call = &async_call;
  async_call.loop();
  tasks::running_here().running_call = nullptr;
  return async_call.done;
}

// A suspended call has ended: its actor does not wait for it any longer.
void leave(tasks::async_call& done, cell& actor) noexcept {
  count_suspended(-1);
  if (thread_counts* const counts = actor_system::of(actor).counts_here()) [[unlikely]]
    counts->of_class(*actor.type).resumed.add(1);
  complete(done);
  if ((actor.flags & cell::ends_soon) != 0 && !suspends(active_here())) end_with_call(actor);
  drop_in_turn(actor);
}

}  // namespace

void end_resumed(tasks::async_call& done) noexcept {
  cell& actor = *static_cast<cell*>(done.actor);
  if (done.is_listed()) actor_system::of(actor).waiting.remove(done);
  active_here().go_on();
  leave(done, actor);
}

namespace {

// In the actor's turn: resumes the call for which the actor is suspended.
const char* resume(tasks::async_call& async_call) noexcept {
  if (run_again(async_call)) end_resumed(async_call);
  return nullptr;
}

// Takes the call out of its reentrant actor's list, even under a running cancel_turns, and while a
// look pauses there.
void unlist(tasks::async_call& async_call) noexcept {
  optional_state& optional = optional_state::of(*static_cast<cell*>(async_call.actor));
  if (optional.next_cancelled == &async_call)
    optional.next_cancelled = async_call_list::next(async_call);
  if (optional.next_looked == &async_call) optional.next_looked = async_call_list::next(async_call);
  optional.async_calls.remove(async_call);
}

// In the actor's turn: resumes one of a reentrant actor's suspended calls.
const char* resume_reentrant(tasks::async_call& async_call) noexcept {
  if (!run_again(async_call)) return nullptr;
  cell& actor = *static_cast<cell*>(async_call.actor);
  unlist(async_call);
  if (optional_state::of(actor).async_calls.empty()) call_consumer_in(actor);
  leave(async_call, actor);
  return nullptr;
}

// Runs a new call up to its first wait or its end. True when the call is suspended; then it keeps
// its actor alive by a ref.
bool start(tasks::running_state& state, tasks::async_call& call, tasks::coroutine& root,
           const tasks::call_host& at) noexcept {
  cell& actor = *active_here().actor;
  call.actor = &actor;
  call.at = &at;
  call.refill();
  if (call.context == nullptr) call.context = state.context;  // the trace of a message
  call.cancelled = (actor.flags & cell::cancels) != 0;
  run(state, call, [&] { call.start(root); });
  if (call.done) {
    complete(call);
    return false;
  }
  add_ref(actor);
  count_suspended(1);
  if (thread_counts* const counts = actor_system::of(actor).counts_here()) [[unlikely]]
    counts->of_class(*actor.type).suspended.add(1);
  if (call.context != nullptr) [[unlikely]]
    tasks::watch_context(call);
  return true;
}

}  // namespace

// A handler of a reentrant actor is a coroutine: starts its call, beside those that are suspended.
void begin_reentrant(tasks::async_call& call, tasks::coroutine& root) noexcept {
  tasks::running_state& state = tasks::running_here();
  cell& actor = *active_here().actor;
  if (!start(state, call, root, actor_system::of(actor).host_reentrant)) return;
  optional_state::of(actor).async_calls.push_front(call);
  if (!optional_state::of(actor).listed) actor_system::of(actor).waiting.add(actor);
}

// The same for other actors: if the call suspends, the actor handles only urgent mail until it
// ends.
void begin(tasks::async_call& call, tasks::coroutine& root) noexcept {
  tasks::running_state& state = tasks::running_here();
  if (!start(state, call, root, actor_system::of(*active_here().actor).host)) return;
  active_here().suspend(call);
  state.unusual.store(true, std::memory_order_relaxed);  // order: relaxed  the thread's own
}

void cancel_turns(activation& active) noexcept {
  active.actor->flags |= cell::cancels;
  if (has_optional_state(*active.actor)) {
    // A call that fails here may cause cancel_turns again, within this loop; the inner one then
    // cancels the rest, and this loop finds none left.
    optional_state& optional = optional_state::of(*active.actor);
    optional.next_cancelled = optional.async_calls.first();
    while (tasks::async_call* call = optional.next_cancelled) {
      optional.next_cancelled = async_call_list::next(*call);
      call->cancel();
      resume_reentrant(*call);
    }
  }
  if (active.suspended == nullptr) return;
  active.suspended->cancel();
  resume(*active.suspended);
}

void make_call_hosts(actor_system& system, const tasks::call_host& services) noexcept {
  system.host = services;
  system.host.go_on = &go_on;
  system.host.go_on_later = &go_on_later;
  system.host.resume = &resume;
  system.host.aside = &system.host_aside;
  system.host.left = &system.left;
  system.host_reentrant = system.host_aside = system.host;
  system.host_reentrant.resume = &resume_reentrant;
  system.host_aside.resume = &tasks::side_call::resume_side;
  system.host_aside.is_aside = system.host_aside.is_part = true;
}

void count_suspended(int change) noexcept {
  tasks::running_here().own.add(tasks::counted::suspended, change);
}

namespace {

// The chain of asks from one ask up to its askers, each held by its lock while this object lives:
// an ask's parent goes only when the ask drops it, and that needs the ask's lock. Locks are taken
// upwards only: threads cannot wait for each other in a cycle here.
class asks_above {
 public:
  // The caller keeps `first` alive.
  explicit asks_above(const tasks::ask_link& first) noexcept { take(first); }
  asks_above(const asks_above&) = delete;
  asks_above& operator=(const asks_above&) = delete;
  ~asks_above() {
    tasks::running_here().own.add(tasks::counted::hops, count_ - 1);
    for (unsigned i = 0; i < count_; ++i) held_[i]->unlock();
  }
  const tasks::ask_link& last() const noexcept { return *held_[count_ - 1]; }
  // The next asker upwards, locked. Null when there is none, or the chain has reached links_max.
  const tasks::shared_state* next() noexcept {
    const tasks::shared_state* const above = last().parent;
    if (above == nullptr || count_ == links_max) return nullptr;
    take(*above->asked);
    return above;
  }
  std::span<const tasks::ask_link* const> all() const noexcept { return {held_.data(), count_}; }

 private:
  // A longer cycle is found by the search (deadlock_search.hpp).
  static constexpr unsigned links_max = 9;
  void take(const tasks::ask_link& ask) noexcept {
    ask.lock();
    held_[count_++] = &ask;
  }
  std::array<const tasks::ask_link*, links_max> held_{};
  unsigned count_ = 0;
};

struct named_ask {
  message::handler method;
  tasks::source_line at;
};

[[noreturn]] TROUPE_NOINLINE void throw_cycle(std::span<const named_ask> upwards) {
  std::string names, places;
  for (const named_ask& ask : upwards) {
    const std::string method = ask.method(nullptr, nullptr, message_act::describe);
    names = names.empty() ? method : method + " asks " + names;
    if (ask.at != nullptr)
      places = "\n  " + place_of(tasks::location_of(ask.at)) + " waits for the answer of " +
               method + places;
  }
  throw deadlock("troupe: ask: this would wait for itself: " + names + places);
}

// Whether a turn is suspended for this answer without a time limit: the turn that asked, or one
// above that is forwarded this answer.
bool is_waited_for(const tasks::shared_state& answer, const tasks::shared_state* above) noexcept {
  if (answer.resolved()) return false;
  // A hint: a turn that begins to wait later is found by the search.
  if (answer.asked->by_call()) return answer.asked->is_waited_for();
  // order: relaxed  only compared
  return above != nullptr && above->asked->forwarded.load(std::memory_order_relaxed) == &answer;
}

// Throws deadlock when the ask that is about to be awaited would close a cycle of suspended turns:
// when its callee is among the askers above it.
void find_cycle(const tasks::ask_link& ask, const void* callee) {
  std::array<named_ask, 9> found;
  std::size_t count = 0;
  {
    asks_above way(ask);
    bool closes = ask.asker == callee;
    while (!closes) {
      const tasks::shared_state* const at = way.next();
      if (at == nullptr || !is_waited_for(*at, at->asked->parent)) return;
      closes = at->asked->asker == callee;
    }
    static_cast<void>(way.next());  // one more, to name the call that the last asker runs in
    for (const tasks::ask_link* asker : way.all()) {
      // order: relaxed  for the message only; the asking turn writes it when it begins to wait
      const std::atomic_ref at(const_cast<tasks::source_line&>(asker->at));
      found[count++] = {asker->method, at.load(std::memory_order_relaxed)};
    }
  }
  const std::span<const named_ask> upwards(found.data(), count);
  // A line of the library is useless to the user, and the user's own lines lie in coroutines of
  // other turns, which only the search may read: the refusal is left to the search.
  const auto names_library = [](const named_ask& named) {
    return named.at != nullptr && is_of_library(tasks::location_of(named.at));
  };
  if (std::ranges::any_of(upwards, names_library)) return;
  throw_cycle(upwards);
}

void link_to(tasks::ask_link& link, tasks::shared_state& parent) noexcept {
  link.parent = &parent;
  parent.add_ref();
}

// Links an ask by an ordinary method. The method itself waits for nothing; but if it returns the
// future, then its own asker waits for this ask.
void link_to_answer(tasks::ask_link& link) noexcept {
  tasks::shared_state* const answers = turn_here().answers;
  if (answers == nullptr || answers->asked->asked != current_cell()) return;
  link.passed = static_cast<std::uint8_t>(
      std::min(answers->asked->passed + 1, int{tasks::ask_link::passed_max}));
  // Else no turn waits above.
  if (answers->asked->asker != nullptr || answers->asked->parent != nullptr)
    link_to(link, *answers);
}

}  // namespace

namespace {
TROUPE_INLINE void set_main_lane(tasks::ask_link& link, const cell& callee) noexcept {
  const actor_system& system = actor_system::of(callee);
  // order: relaxed  no other thread can see the ask yet
  if (system.needs_run(callee.lives_on()))
    link.main_lane.store(system.main_lane, std::memory_order_relaxed);
}
}  // namespace

void link_main_lane(tasks::ask_link& link, const cell& callee) noexcept {
  set_main_lane(link, callee);
}

void link_ask(tasks::ask_link& link, const cell& callee, message::handler method) noexcept {
  const tasks::async_call* asking = tasks::running_here().running_call;
  link.method = method;
  link.asked = &callee;
  const bool callee_active = mailbox(const_cast<cell&>(callee).word).read() != mailbox::inactive;
  set_main_lane(link, callee);
  tasks::call_context* within = tasks::running_here().context;
  if (within == nullptr && asking != nullptr) within = asking->context;
  if (within != nullptr) [[unlikely]] {
    tasks::hold_context(*within);
    link.name_or_context = within;
  }
  if (asking == nullptr) {
    const actor_system& system = actor_system::of(callee);
    // order: relaxed  as link_main_lane
    if (system.is_simulated) link.main_lane.store(system.main_lane, std::memory_order_relaxed);
    return link_to_answer(link);
  }
  // Two kinds of askers close no cycle: a reentrant actor answers while it waits, and a spawned
  // task cannot be asked. (A spawned task may also have another actor when it resumes.)
  const cell_type* const type = static_cast<const cell*>(asking->actor)->type;
  if (!type->reentrant && type != &spawned_type) link.asker = asking->actor;
  using origin = tasks::ask_link::origin;
  link.from = callee_active ? origin::call_to_active : origin::call;
  if (asking->answers != nullptr) link_to(link, *asking->answers);
}

tasks::call_context* begin_span(tasks::ask_link& ask, message::handler method) noexcept {
  tasks::call_context& outer = *ask.context();
  if (!observe::is_watched(observe::watched::spans)) return &outer;
  const char* const name = method(nullptr, nullptr, message_act::describe);
  tasks::context_ref own_context =
      tasks::context_ref::make_spanned(outer, tasks::span_kind::internal, name);
  if (own_context.get() == nullptr) return &outer;
  tasks::add_to_span(*own_context.get(), "troupe.actor.class", current_cell()->type->name);
  ask.name_or_context = own_context.release();
  ask.has_span = true;
  tasks::drop_context(outer);
  return ask.context();
}

void end_span_of(const tasks::ask_link& ask, const std::exception_ptr& failure) noexcept {
  tasks::end_span(*ask.context(), failure);
}

answering::answering(tasks::shared_state& to) noexcept
    : before_(std::exchange(turn_here().answers, &to)) {}
answering::~answering() { turn_here().answers = before_; }

// Below: an ordinary method returned the future `from` as the answer of `ask`, which keeps a ref to
// it. Freeing such refs does not recurse for an ask that this turn made: the state of an ask lives
// until its resolver is done with it, even if other threads drop it before, and `ask` is resolved
// after that. It would recurse for an answer that was asked for elsewhere, and
// behind many methods that forward an answer: those would be freed one within the other. Therefore
// unknown_source() replaces them.
namespace {

// Represents a result whose resolver is unknown. Never freed.
tasks::shared_state& unknown_source() noexcept {
  alignas(tasks::shared_state) static std::byte storage[sizeof(tasks::shared_state)];
  static tasks::shared_state& instance = *::new (storage) tasks::shared_state(
      [](tasks::shared_state&, bool) noexcept { return false; });
  return instance;
}

}  // namespace

void forward_answer(tasks::ask_link& ask, tasks::shared_state& from) {
  // order: relaxed  read by the thread in run(), or without effect
  const auto lane = from.asked == nullptr ? decltype(ask.main_lane.load()){}
                                          : from.asked->main_lane.load(std::memory_order_relaxed);
  ask.main_lane.store(lane, std::memory_order_relaxed);  // order: relaxed  as above
  if (from.asked != nullptr && from.asked->parent != nullptr && from.asked->parent->asked == &ask) {
    find_cycle(*from.asked, from.asked->asked);
  }
  // From here on no turn of this actor gives the answer. Freeing a chain of any length would need
  // recursion of the same depth: an answer that does not follow from this very ask counts as
  // resolved by an unknown source.
  const bool follows = from.asked == nullptr || from.asked->passed == ask.passed + 1;
  tasks::shared_state& source = follows ? from : unknown_source();
  source.add_ref();
  // order: release  publishes the state to the search for deadlocks; pairs with its acquire
  ask.forwarded.store(&source, std::memory_order_release);
}

// A runtime that has begun to end takes no reports.
void report_untaken(cell& actor, message::handler method, std::exception_ptr failure) noexcept {
  actor_system& system = actor_system::of(actor);
  if (const actor_system::gate_guard gate(system); gate.let_in())
    system.report(&actor, method, std::move(failure));
}

void report_keeping(message::handler describes, std::exception_ptr failure,
                    kept_memory keeps) noexcept {
  if (current_cell() == nullptr) std::terminate();
  failures_keep = &keeps;
  report_failure(describes, std::move(failure));
  failures_keep = nullptr;
}

void report_keeping(actor_system& system, std::exception_ptr failure, kept_memory keeps) noexcept {
  failures_keep = &keeps;
  system.report(nullptr, nullptr, std::move(failure));
  failures_keep = nullptr;
}

kept_memory keep_context(owned_context context) noexcept try {
  kept_memory keeps;
  if (context) keeps.bytes = context->bytes();
  keeps.held = std::make_shared<owned_context>(std::move(context));
  return keeps;
} catch (const std::bad_alloc&) {
  return {};
}

void run_aside(actor_system& system, unique_function<void()> procedure) {
  system.owner.run_blocking(std::move(procedure));
}

void mark_simulated(const actor_system& system, tasks::shared_state& result) noexcept {
  if (system.is_simulated) result.main_lane = system.main_lane;
}

std::exception_ptr dropped_call_error() noexcept try {
  return std::make_exception_ptr(
      cancelled("troupe: blocking: the program was stopped before the call began"));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

actor_system& running_system(const char* caller) {
  if (const cell* running = current_cell()) return actor_system::of(*running);
  const tasks::running_state& state = tasks::running_here();
  // order: relaxed (both)  the thread's own; the runtime lives while the procedure runs
  if (state.in_procedure.load(std::memory_order_relaxed)) {
    const tasks::runtime_state* const runtime = state.runtime.load(std::memory_order_relaxed);
    return static_cast<actor_system&>(const_cast<tasks::runtime_state&>(*runtime));
  }
  throw usage_error(std::string("troupe: ") + caller +
                    ": call it in a handler, a task or a posted procedure; elsewhere use the "
                    "runtime's");
}

// In the actor's own turn no other thread can make a ref from the one that is dropped: drop_only()
// therefore suffices.
void drop_in_turn(cell& actor) noexcept {
  auto* const active = static_cast<activation*>(tasks::running_here().active);
  if (current_cell() == &actor && active != nullptr && active->actor == &actor &&
      actor.refs.drop_only())
    return active->set_unreferenced(true);
  drop_ref(actor);
}

void end_spawned(cell& actor) noexcept { drop_in_turn(actor); }

void end_call(activation& active) noexcept {
  cell& actor = *active.actor;
  inside_actor inside(actor);
  // The thread may be in a turn of another runtime, whose handler destroys this runtime.
  tasks::running_state& state = tasks::running_here();
  sched::runnable* const active_before = std::exchange(state.active, &active);
  tasks::async_call* const call_before = state.running_call;
  tasks::async_call& call = *active.suspended;
  if (call.is_listed()) actor_system::of(actor).waiting.remove(call);
  const bool done = call.finish_now();  // if not, discard destroys its frames unfinished
  active.go_on();
  call.call.act(&call.call, nullptr, done ? message_act::complete : message_act::discard);
  state.active = active_before;
  state.running_call = call_before;
  drop_ref(actor);
}

bool is_cancelled(const std::exception_ptr& failure) noexcept {
  if (failure == nullptr) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

void end_reentrant(cell& actor) noexcept {
  if (!has_optional_state(actor)) return;
  inside_actor inside(actor);
  tasks::running_state& state = tasks::running_here();
  sched::runnable* const active_before = std::exchange(state.active, nullptr);
  tasks::async_call* const call_before = state.running_call;
  while (tasks::async_call* call = optional_state::of(actor).async_calls.first()) {
    const bool done = call->finish_now();
    unlist(*call);
    call->call.act(&call->call, nullptr, done ? message_act::complete : message_act::discard);
    drop_ref(actor);
  }
  state.active = active_before;
  state.running_call = call_before;
}

std::exception_ptr no_future_error(message::handler method) noexcept try {
  return std::make_exception_ptr(
      usage_error(std::string("troupe: ask: the handler returned a future without a result: ") +
                  method(nullptr, nullptr, message_act::describe)));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

std::exception_ptr refused_error() noexcept try {
  return std::make_exception_ptr(
      deadlock("troupe: the ask was refused as a deadlock before its handler began"));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

std::exception_ptr stopped_error(message::handler method) noexcept try {
  return std::make_exception_ptr(actor_stopped(
      std::string("troupe: ask: the actor has stopped, or was stopped before it handled ") +
      method(nullptr, nullptr, message_act::describe)));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

namespace {

void send_with_ref(void* actor, message& mail) {
  deliver_with_its_ref(*static_cast<cell*>(actor), mail);
}
bool contains(void* actor, const void* object) noexcept {
  return offset_in(*static_cast<cell*>(actor), object) != SIZE_MAX;
}
void throw_if_deadlock(const tasks::ask_link& ask) { find_cycle(ask, ask.asked); }

}  // namespace

constinit const tasks::actor_functions functions_of_actors{
    [](void* actor) noexcept { add_ref(*static_cast<cell*>(actor)); },
    [](void* actor) noexcept { drop_ref(*static_cast<cell*>(actor)); },
    &send_with_ref,
    &contains,
    &report_failure,
    &throw_if_deadlock,
    &take_refusal};

}  // namespace troupe::actor
