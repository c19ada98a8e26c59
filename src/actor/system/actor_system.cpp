#include "actor/system/actor_system.hpp"

#include <new>

#include "base/atomics.hpp"
#include "sched/stealing/worker.hpp"
#include "task/running/running.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

constinit thread_local thread_slots slots_of_thread{};

memory::slot_space::magazines* claim_magazines(actor_system& system) noexcept {
  if (slots_of_thread.system != nullptr || own_worker(system) == nullptr) return nullptr;
  try {
    std::lock_guard lock(system.making_magazines);
    slots_of_thread.magazines =
        system.magazines_of_workers.emplace_back(std::make_unique<memory::slot_space::magazines>())
            .get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  slots_of_thread.system = &system;
  return slots_of_thread.magazines;
}

caller_magazines::caller_magazines(actor_system& system) noexcept
    : system_(system), before_(slots_of_thread) {
  slots_of_thread = {};
  if (system.magazines_of_caller != nullptr)
    slots_of_thread = {&system, system.magazines_of_caller};
}

caller_magazines::~caller_magazines() {
  if (slots_of_thread.system == &system_) system_.magazines_of_caller = slots_of_thread.magazines;
  slots_of_thread = before_;
}

constinit thread_local const kept_memory* failures_keep = nullptr;

namespace {

// Counts the time of a span in the handler that the calling thread runs, if its runtime is
// observed.
void count_span(const char* name, std::uint64_t ticks) noexcept {
  const cell* const actor = current_cell();
  thread_counts* const counts = actor == nullptr ? nullptr : actor_system::of(*actor).counts_here();
  if (counts == nullptr) return;
  // order: relaxed  the thread's own
  const message::handler method = tasks::running_here().method.load(std::memory_order_relaxed);
  if (method == nullptr) return;
  if (span_count* const span = counts->of(*actor->type, method).of_span(name)) {
    span->spans.add(1);
    span->ticks.add(ticks);
  }
}

}  // namespace

actor_system::actor_system(limits turn, actor_host& host, bool observed)
    : runtime_state(host),
      turn(turn),
      owner(host),
      counts(observed ? std::make_unique<message_counts>() : nullptr),
      slots(static_cast<runtime_state*>(this)) {
  // order: relaxed  no other thread can see it yet
  if (observe::tracing()) slow_path_flags.fetch_or(traced, std::memory_order_relaxed);
  if (!observed) return;
  observe::count_spans_by(&count_span);
  observe::watch(observe::watched::counts);
  // order: relaxed  as above
  slow_path_flags.fetch_or(runtime_state::counts_messages, std::memory_order_relaxed);
}

actor_system::~actor_system() {
  if (slots_of_thread.system == this) slots_of_thread = {};
  slots.for_each([](void* slot) { end_optional_state(*static_cast<cell*>(slot)); });
}

void actor_system::report(const cell* actor, message::handler method,
                          std::exception_ptr failure) noexcept {
  // A call that a stop cancelled is no failure.
  if (discarding() && is_cancelled(failure)) return;
  failed_call where{
      "", method != nullptr ? method(nullptr, nullptr, message_act::describe) : "post", 0, {}};
  if (actor != nullptr) {
    where.actor = actor->type->name;
    where.id = id_of(*actor);
  }
  if (failures_keep != nullptr) where.keeps = *failures_keep;
  owner.failed(where, std::move(failure));
}

kept_failure report_own(cell& actor, message::handler method, std::exception_ptr failure) noexcept {
  actor_heap* const heap = heap_of(actor);
  const kept_memory keeps = heap == nullptr ? kept_memory{} : heap->keep();
  kept_failure failed(std::move(failure), keeps.held);
  if (keeps.held != nullptr) failures_keep = &keeps;
  actor_system::of(actor).report(&actor, method, failed.exception);
  failures_keep = nullptr;
  return failed;
}

failed_call place_of_dropped() noexcept {
  failed_call where;
  where.is_dropped = true;
  if (const cell* const actor = current_cell()) {
    where.actor = actor->type->name;
    where.id = id_of(*actor);
    // order: relaxed  the thread's own
    if (const auto method = tasks::running_here().method.load(std::memory_order_relaxed))
      where.method = method(nullptr, nullptr, message_act::describe);
  }
  return where;
}

gate::ends actor_system::how_thread_ends() const noexcept {
  return own_worker(*this) != nullptr ? gate::ends::with_pool : gate::ends::by_leave;
}
bool actor_system::enter_gate() noexcept { return entrance.enter(closing, how_thread_ends()); }
void actor_system::leave() noexcept { entrance.leave(how_thread_ends()); }
void actor_system::close() noexcept { entrance.close(closing); }

// order: relaxed  a statistic
void actor_system::count_dead_letter() noexcept {
  dead_letters.fetch_add(1, std::memory_order_relaxed);
}

// At the runtime's end a message that the observer sends may become a dead letter at once: it is
// counted, but not observed.
void actor_system::observe_dead_letter(const failed_call& where, bool observed) noexcept {
  thread_local bool observing = false;
  if (!observed || observing || !observes_dead_letters) return;
  observing = true;
  owner.dead_letter(where);
  observing = false;
}

void actor_system::drop_orphan_ref() noexcept {
  // order: acq_rel  the thread that drops the last ref frees the memory that all have used
  if (orphan_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace troupe::actor
