#include "runtime/core/scheduled_call.hpp"

#include <algorithm>

#include "actor/spawned/spawned.hpp"
#include "runtime/services/posted.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/context.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/runtime/tell_timers.hpp"
#include "troupe/runtime/timer.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe {

scheduled_call::scheduled_call(runtime_core& core, unique_function<void()>&& calls,
                               std::chrono::nanoseconds again, const timer_options& options,
                               void* to)
    : timer(&on_time,
            again == std::chrono::nanoseconds::zero() ? tasks::timer_source::after
                                                      : tasks::timer_source::every,
            options.weak),
      core_(core.shared_from_this()),
      procedure_(std::move(calls)),
      rare_(again == std::chrono::nanoseconds::zero() && !options.stop.stop_possible() &&
                    to == nullptr
                ? rare_part()
                : make_rare(again, to)) {}

scheduled_call::~scheduled_call() {
  if (void* const held = actor()) [[unlikely]]
    tasks::drop_actor(held);
}

TROUPE_NOINLINE void scheduled_call::rare_deleter::operator()(rare* old) const noexcept {
  delete old;
}
TROUPE_NOINLINE scheduled_call::rare_part scheduled_call::make_rare(std::chrono::nanoseconds again,
                                                                    void* to) {
  return rare_part(new rare{again, to, {}, {}});
}

void scheduled_call::start(std::chrono::nanoseconds span, const std::stop_token& stop) {
  const std::int64_t due_ns = tasks::due_in(*core_->clock, span);
  if (rare_ != nullptr) [[unlikely]]
    return start_rare(due_ns, stop);
  core_->clock->arm(*this, due_ns);
}

TROUPE_NOINLINE void scheduled_call::start_rare(std::int64_t due_ns, const std::stop_token& stop) {
  rare_->due = std::chrono::nanoseconds(due_ns);
  core_->clock->arm(*this, due_ns);
  if (stop.stop_possible()) rare_->stop.emplace(stop, on_stop{*this});
}

bool scheduled_call::cancel() noexcept {
  if (rare_ == nullptr && core_->clock->take_back(*this)) {
    // The usual case. No other thread can cancel the call, and the timers' ref to it now also
    // belongs to the caller.
    // order: relaxed (both)  only the handle refers to it by now
    step_.store(step::cancelled, std::memory_order_relaxed);
    refs_.store(1, std::memory_order_relaxed);
    drop_procedure();
    return true;
  }
  // order: relaxed  published by the timers' lock, which go_on passes too
  const step before = step_.exchange(step::cancelled, std::memory_order_relaxed);
  if (before == step::cancelled) return false;
  const bool more = before == step::waits || is_periodic();
  if (core_->clock->take_back(*this)) end();
  return more;
}

void scheduled_call::on_time(timer& self) noexcept {
  auto& call = static_cast<scheduled_call&>(self);
  // A call that cannot be posted may have ended when the exception comes. The core has not: it ends
  // the clock, which calls this, before itself.
  runtime_core& core = *call.core_;
  try {
    if (call.actor() != nullptr) return call.send_turn();
    firing due(call);
    const auto make = [&call]() -> sched::runnable& { return make_posted(call); };
    if (core.post_made(make)) due.fired = nullptr;
  } catch (...) {
    core.system->report(nullptr, nullptr, std::current_exception());
  }
}

sched::runnable& scheduled_call::make_posted(scheduled_call& fired) {
  void* const block = memory::allocate(sizeof(posted));
  posted& item = *::new (block) posted(fired);
  item.type = &posted::vtable;
  return item;
}

const sched::runnable_vtable scheduled_call::posted::vtable{&run, &never_deactivate, &never_pending,
                                                            &dispose, &dispose};

sched::after_turn scheduled_call::posted::run(sched::runnable& item) {
  auto& self = static_cast<posted&>(item);
  scheduled_call& call = *self.due.fired;
  run_posted(*call.core_->system, [&call] { call.call(); });
  std::exchange(self.due.fired, nullptr)->go_on();
  return sched::after_turn::gone;
}

void scheduled_call::posted::dispose(sched::runnable& item) noexcept {
  auto* const self = static_cast<posted*>(&item);
  std::destroy_at(self);
  memory::deallocate(self, sizeof(posted));
}

void scheduled_call::send_turn() {
  void* const place = memory::allocate(sizeof(turn));
  tasks::send_to_actor(actor(), *::new (place) turn(*this));
}

// The actor has ended when it discards the message: then no further call comes.
const char* scheduled_call::turn::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return sched::described_as_timed;
  const auto free = [](turn* done) noexcept {
    std::destroy_at(done);
    memory::deallocate(done, sizeof(turn));
  };
  const std::unique_ptr<turn, decltype(free)> self(static_cast<turn*>(base), free);
  if (act == sched::message_act::handle) {
    self->due();
  } else {
    std::exchange(self->due.fired, nullptr)->end();
  }
  return nullptr;
}

void scheduled_call::call() {
  step expected = step::waits;
  // order: relaxed  decides only which comes first
  if (step_.compare_exchange_strong(expected, step::runs, std::memory_order_relaxed)) procedure_();
}

// After the call, or in place of a call that was discarded.
void scheduled_call::go_on() noexcept {
  // order: relaxed  set by the thread that ends the runtime; that thread then ends this call, or
  // waits for it
  if (!is_periodic() || core_->system->closing.load(std::memory_order_relaxed)) return end();
  step expected = step::runs;
  // order: relaxed  as cancel
  if (!step_.compare_exchange_strong(expected, step::waits, std::memory_order_relaxed) &&
      expected == step::cancelled)
    return end();
  const std::chrono::nanoseconds now(core_->clock->now_ns());
  const std::chrono::nanoseconds period = rare_->period;
  std::chrono::nanoseconds& due = rare_->due;
  // its next time would be beyond the largest time
  if (period > std::chrono::nanoseconds(tasks::timers::last_ns) - std::max(due, now)) return end();
  due += period;
  // missed periods are skipped
  if (due <= now) due += (now - due) / period * period + period;
  // order: relaxed  the caller has a ref already
  refs_.fetch_add(1, std::memory_order_relaxed);  // once armed, the call may come and end at once
  core_->clock->arm(*this, due.count());          // cannot throw: the timers' thread runs already
  // order: relaxed  as cancel
  if (step_.load(std::memory_order_relaxed) == step::cancelled && core_->clock->take_back(*this))
    end();
  drop_ref();
}

void scheduled_call::end() noexcept {
  // order: relaxed  as cancel
  step_.store(step::cancelled, std::memory_order_relaxed);
  drop_procedure();
  drop_ref();
}

void scheduled_call::drop_ref() noexcept {
  // order: acquire  the only ref left: sees the other holders' writes
  if (refs_.load(std::memory_order_acquire) != 1) {
    // order: acq_rel  this holder's writes are seen by the holder that frees the call; pairs with
    // itself
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
  delete this;
}

bool timer::cancel() noexcept { return call_ != nullptr && call_->cancel(); }
void timer::drop() noexcept { call_->drop_ref(); }

namespace {

// The procedure, each call of which gets a context of its own.
TROUPE_NOINLINE unique_function<void()> in_contexts(actor::actor_system& system,
                                                    const context_options& heap,
                                                    unique_function<void()> procedure) {
  static_cast<void>(make_context(heap));  // an option_error comes here, and not in each call
  return [&system, heap, procedure = std::move(procedure)]() mutable {
    owned_context own_context = make_context(heap);
    std::exception_ptr failure;
    try {
      const context_scope inside(*own_context);
      return procedure();
    } catch (...) {
      failure = std::current_exception();
    }
    actor::report_keeping(system, std::move(failure), actor::keep_context(std::move(own_context)));
  };
}

// A ref to an actor, for as long as it has no other owner.
class held_actor {
 public:
  held_actor() = default;
  held_actor(const held_actor&) = delete;
  held_actor& operator=(const held_actor&) = delete;
  ~held_actor() {
    if (actor_ != nullptr) tasks::drop_actor(actor_);
  }
  void hold_current() noexcept { actor_ = tasks::hold_current_actor(); }
  void* get() const noexcept { return actor_; }
  void release() noexcept { actor_ = nullptr; }

 private:
  void* actor_ = nullptr;
};

// The procedure, each call of which runs in its caller's trace, if any.
TROUPE_NOINLINE unique_function<void()> in_trace(unique_function<void()> procedure) {
  tasks::context_ref trace = tasks::context_ref::current_trace();
  if (trace.get() == nullptr) return procedure;
  return [trace = std::move(trace), procedure = std::move(procedure)]() mutable {
    const tasks::inside_context inside(trace.get());
    procedure();
  };
}

// Makes the call and arms it. `held` is null, or has the actor whose turns the calls are. The
// caller gets the handle's ref.
scheduled_call& start_call(runtime_core& core, std::chrono::nanoseconds span,
                           unique_function<void()>&& procedure, std::chrono::nanoseconds period,
                           const timer_options& chosen, held_actor* held) {
  auto& call = *new scheduled_call(core, std::move(procedure), period, chosen,
                                   held == nullptr ? nullptr : held->get());
  if (held != nullptr) [[unlikely]]
    held->release();
  try {
    call.start(span, chosen.stop);
  } catch (...) {
    call.drop_ref();  // the timers' ref
    call.drop_ref();
    throw;
  }
  return call;
}

TROUPE_NOINLINE scheduled_call& start_call_in_turns(runtime_core& core,
                                                    std::chrono::nanoseconds span,
                                                    unique_function<void()>&& procedure,
                                                    std::chrono::nanoseconds period,
                                                    const timer_options& chosen) {
  held_actor actor;
  actor.hold_current();
  return start_call(core, span, std::move(procedure), period, chosen, &actor);
}

}  // namespace

timer runtime_core::schedule(std::chrono::nanoseconds span, unique_function<void()>&& procedure,
                             std::chrono::nanoseconds period, const timer_options& chosen,
                             bool in_turns) {
  // order: relaxed  set before the pool ends, by the thread that ends it
  if (chosen.stop.stop_requested() || system->closing.load(std::memory_order_relaxed)) return {};
  if (chosen.context) [[unlikely]]
    procedure = in_contexts(*system, *chosen.context, std::move(procedure));
  if (tasks::current_context() != nullptr) [[unlikely]]
    procedure = in_trace(std::move(procedure));
  timer handle(in_turns ? start_call_in_turns(*this, span, std::move(procedure), period, chosen)
                        : start_call(*this, span, std::move(procedure), period, chosen, nullptr));
  // another thread's call may be the first event in a while
  if (simulated_ != nullptr) [[unlikely]]
    simulated_->poke();
  return handle;
}

timer runtime_core::after(std::chrono::nanoseconds span, unique_function<void()>&& procedure,
                          const timer_options& chosen, bool in_turns) {
  if (!procedure)
    throw usage_error("troupe: after: the procedure is empty; give it something to call");
  return schedule(span, std::move(procedure), {}, chosen, in_turns);
}

timer runtime_core::every(std::chrono::nanoseconds period, unique_function<void()>&& procedure,
                          const timer_options& chosen, bool in_turns) {
  if (!procedure)
    throw usage_error("troupe: every: the procedure is empty; give it something to call");
  if (period.count() <= 0) throw option_error("troupe: every: the period must be longer than zero");
  return schedule(period, std::move(procedure), period, chosen, in_turns);
}

namespace {

runtime_core& running_core(const char* caller) {
  return static_cast<runtime_core&>(actor::running_system(caller).runtime);
}

// A task may end before its timers: their calls are none of its turns.
bool is_in_handler() noexcept {
  const actor::cell* const running = actor::current_cell();
  return running != nullptr && running->type != &actor::spawned_type;
}

}  // namespace

timer actor::start_timer(const cell& actor, time_span span, time_span period,
                         unique_function<void()> sends, const timer_options& options) {
  auto& core = static_cast<runtime_core&>(actor_system::of(actor).runtime);
  return period.count() == 0 ? core.after(span, std::move(sends), options)
                             : core.every(period, std::move(sends), options);
}

timer after(time_span span, unique_function<void()> procedure, const timer_options& options) {
  return running_core("after").after(span, std::move(procedure), options, is_in_handler());
}
timer every(time_span period, unique_function<void()> procedure, const timer_options& options) {
  return running_core("every").every(period, std::move(procedure), options, is_in_handler());
}

}  // namespace troupe
