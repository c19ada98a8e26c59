// How a runtime starts (the constructor, make_executors), ends (shut_down), places actors
// (placement_of, pinned_index), stops (stop, carry_out_stop, end_stop), runs (run, run_round), and
// reports on itself (dump, metrics).
#include "runtime/core/runtime_core.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "actor/root/actor_root.hpp"
#include "actor/turn/running_handlers.hpp"
#include "actor/turn/turn_records.hpp"
#include "actor/waits/deadlock_search.hpp"
#include "actor/waits/suspended.hpp"
#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "observe/flight/last_turns.hpp"
#include "runtime/debugger_table.hpp"
#include "runtime/environment.hpp"
#include "runtime/services/posted.hpp"
#include "runtime/services/served_runtimes.hpp"
#include "sched/exploring/explored.hpp"
#include "sched/policies/shared_queue.hpp"
#include "sched/poller.hpp"
#include "sched/stealing/work_stealing.hpp"
#include "task/dropped_errors.hpp"
#include "task/running/main_lanes.hpp"
#include "task/running/running.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe {
namespace {

using sched::rounds;

actor::limits limits_of(const turn_limits& chosen) {
  return {chosen.messages, chosen.time.count()};
}

// Without the names when memory is out.
template <class Named>
Named with_names(Named named, const actor::failed_call& where) noexcept {
  named.actor_id = where.id;
  try {
    named.actor = where.actor;
    named.method = where.method;
  } catch (const std::bad_alloc&) {
    named.actor.clear();
  }
  return named;
}

// Never destroyed: threads may end after the program's static objects.
served_runtimes<runtime_core>& runtimes_of_process() noexcept {
  static auto& all = *new served_runtimes<runtime_core>;
  return all;
}

std::uint8_t ready_units_of(sched::choice_source* source) {
  constexpr std::uint8_t most = tasks::ready_units_of_threads;
  if (source == nullptr) return most;
  const sched::choice_point once{.kind = sched::choice_kind::ready_units, .bound = most};
  return static_cast<std::uint8_t>(1 + source->decide(once));
}

tasks::time_kept_by keeper_of_time(policy chosen) noexcept {
  switch (chosen) {
    case policy::simulated:
      return tasks::time_kept_by::simulation;
    case policy::one_thread:
      return tasks::time_kept_by::worker;
    case policy::work_stealing:
    case policy::shared_queue:
      break;
  }
  return tasks::time_kept_by::own_thread;
}

}  // namespace

runtime_core::runtime_core(runtime_options chosen)
    : options(resolve(std::move(chosen))),
      system(actor::make_actor_system(limits_of(options.turn), *this, options.observe)),
      aside(options.blocking_threads) {
  try {
    system->is_simulated = options.policy == policy::simulated;
    system->pool_needs_run = options.policy == policy::one_thread;
    // order: relaxed  no turn has begun yet
    if (system->is_simulated)
      system->slow_path_flags.fetch_or(actor::actor_system::simulates, std::memory_order_relaxed);
    if (options.flight_recorder_bytes != 0) {
      actor::begin_recording(*system, options.flight_recorder_bytes);
      observe::write_at_crash(
          []() noexcept { static_cast<void>(observe::write_last_turns(STDERR_FILENO, 40)); });
    }
    system->main_lane = tasks::main_lanes::claim();
    system->observes_dead_letters = options.on_dead_letter != nullptr;
    system->began_ns = system->is_simulated ? 0 : now_ns();
    sched::runtime_host& self = *this;
    clock = std::make_unique<tasks::timers>(self, keeper_of_time(options.policy), options.workers);
    if (options.observe) clock->count_sources();
    const auto chooses = [](void* actor, std::uint32_t count) noexcept {
      return tasks::runtime_state::of(actor).runtime.choose_case(count);
    };
    std::unique_ptr<sched::choice_source> source;
    if (system->is_simulated) source = sched::exploring::make_source(options.seed);
    actor::give_services(*system, clock.get(), &io, ready_units_of(source.get()),
                         system->is_simulated ? +chooses : nullptr);
    make_executors(std::move(source));
    runtimes_of_process().add(*this, [] { tasks::observe_dropped_outside(&on_dropped_outside); });
  } catch (...) {
    tasks::main_lanes::give_back(system->main_lane);
    pool.reset();
    actor::destroy_actor_system(*system);
    throw;
  }
  show_debugger(*system);
  // a simulated program's work is done in run(): only searches of other runtimes use its lane
  if (system->is_simulated) return;
  const auto now = [](tasks::runtime_state& runtime) noexcept {
    actor::deadlock_search& deadlocks = *static_cast<actor::actor_system&>(runtime).deadlocks;
    // the search may have missed turns that were running
    if (deadlocks.search() == 0) deadlocks.search_soon();
  };
  const auto soon = [](tasks::runtime_state& runtime) noexcept {
    static_cast<actor::actor_system&>(runtime).deadlocks->search_soon();
  };
  tasks::main_lanes::set_search(system->main_lane, {now, soon, system});
}

std::int64_t runtime_core::now_ns() const noexcept {
  return system->is_simulated ? simulated_->now_ns() : base::now_ns();
}

// The count of blocking calls is kept by an object that travels with the call, so that it is
// correct however the call ends.
void runtime_core::run_blocking(unique_function<void()> call) {
  struct at_work {
    explicit at_work(runtime_core& core) : core(&core) {
      core.alive_.enter();
      // order: relaxed  for running(), a snapshot
      core.blocking_calls_.fetch_add(1, std::memory_order_relaxed);
    }
    at_work(at_work&& other) noexcept : core(std::exchange(other.core, nullptr)) {}
    at_work& operator=(at_work&&) = delete;
    ~at_work() {
      if (core == nullptr) return;
      core->blocking_calls_.fetch_sub(1, std::memory_order_relaxed);  // order: relaxed  as above
      if (core->alive_.leave()) core->out_of_work();
    }
    runtime_core* core;
  };
  // order: relaxed  set before the pool ends, by the thread that ends it
  if (system->closing.load(std::memory_order_relaxed)) return;
  if (simulated_ != nullptr) return post(std::move(call));
  aside.run([this, counted = at_work(*this), call = std::move(call)]() mutable {
    // the call's lazies, loops and resources are this runtime's
    const jobs::job_pool::inside entered(jobs.get());
    // a stop that discards drops calls that have not begun, as it does with procedures (posted.cpp)
    if (!system->discarding()) call();
    // destroys the call's captures, which may resolve its result, before it is uncounted
    call = nullptr;
  });
}

// For operations of I/O, which hold the runtime themselves: the calls are therefore not counted.
void runtime_core::run_aside(unique_function<void()> procedure) {
  // order: relaxed  set before the pool ends, by the thread that ends it
  if (system->closing.load(std::memory_order_relaxed)) return;
  if (simulated_ == nullptr) {
    aside.run(std::move(procedure));
    return;
  }
  constexpr std::uint64_t delay_ns_max = 100'000;
  const auto at_once =
      static_cast<std::int64_t>(simulated_->choose(sched::choice_kind::aside_time, delay_ns_max));
  const bool is_slow = simulated_->fault_at(sched::fault_point::file) == sched::fault::slow_file;
  const std::chrono::nanoseconds delay(is_slow ? at_once + sched::fault_delay_ns : at_once);
  schedule(delay, std::move(procedure), {}, {.weak = true}, false);
}

void runtime_core::report(sched::message::handler describes, std::exception_ptr failure) noexcept {
  system->report(nullptr, describes, std::move(failure));
}

// order: relaxed  a statistic
void runtime_core::report_dropped(const std::exception_ptr& failure) noexcept {
  errors_dropped_.fetch_add(1, std::memory_order_relaxed);
  print(actor::place_of_dropped(), failure);
}

// No runtime is known: each one counts the exception. User code runs without the lock.
void runtime_core::on_dropped_outside(const std::exception_ptr& failure) noexcept {
  static failure_lines lines(runtime_options().failure_lines);
  const bool is_wanted = runtimes_of_process().with_all([](const auto& cores) {
    bool wanted = cores.empty();
    for (runtime_core* const core : cores) {
      // order: relaxed  a statistic
      core->errors_dropped_.fetch_add(1, std::memory_order_relaxed);
      wanted = wanted || core->lines.any();
    }
    return wanted;
  });
  if (is_wanted && lines.tell(failure, actor::place_of_dropped()).arm) lines.cannot_arm();
}

sched::fault runtime_core::storage_fault(sched::fault_point where, sched::lineage* storage) {
  return simulated_->storage_fault(where, storage);
}

std::uint64_t runtime_core::choose_number() noexcept {
  return simulated_->choose(sched::choice_kind::value, UINT64_MAX);
}

unsigned runtime_core::choose_limit(unsigned most) noexcept {
  return 1 + static_cast<unsigned>(simulated_->choose(sched::choice_kind::turn_length, most));
}

std::uint32_t runtime_core::choose_case(std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>(simulated_->choose(sched::choice_kind::wins, count));
}

// An observer is called last, and gets its own share of the exception and of the memory that this
// refers to: once the failure is in the log, another thread may release both.
void runtime_core::failed(const actor::failed_call& where, std::exception_ptr thrown) noexcept {
  const bool heard = options.on_error != nullptr || print(where, thrown);
  if (!options.on_error) {
    failures.add(std::move(thrown), where, heard);
  } else {
    failure seen;
    seen.memory = where.keeps.held;
    seen.what = thrown;
    failures.add(std::move(thrown), where, heard);
    options.on_error(with_names(std::move(seen), where));
  }
  if (options.stop_on_failure) stop(stop_mode::discard, std::chrono::seconds(10));
}

void runtime_core::dead_letter(const actor::failed_call& where) noexcept {
  options.on_dead_letter(with_names<troupe::dead_letter>({}, where));
}

void runtime_core::escalated() noexcept { stop(stop_mode::discard, std::chrono::seconds(10)); }

bool runtime_core::print(const actor::failed_call& where,
                         const std::exception_ptr& failure) noexcept {
  const failure_lines::report report = lines.tell(failure, where);
  // A simulation's time is not its reader's: there the count of lines that were left out is written
  // when run() ends.
  if (!report.arm || simulated_ != nullptr) return report.written;
  try {
    clock->arm(tells_left_out_, tasks::due_in(*clock, std::chrono::seconds(1)));
  } catch (...) {
    lines.cannot_arm();
  }
  return report.written;
}

// Nothing can fail any longer.
void runtime_core::print_unheard() noexcept {
  constexpr std::size_t printed_max = 20;
  if (options.on_error || !lines.any()) return;
  try {
    const std::vector<failure> all = failures.unheard();
    for (std::size_t i = 0; i < std::min(all.size(), printed_max); ++i) {
      failure_lines::write_failure(
          all[i].what, {all[i].actor.c_str(), all[i].method.c_str(), all[i].actor_id, {}}, 0);
    }
    if (all.size() > printed_max) {
      const std::string rest = "troupe: failure: … and " +
                               std::to_string(all.size() - printed_max) + " more that were kept";
      failure_lines::write_text(rest.c_str());
    }
  } catch (const std::bad_alloc&) {
    failure_lines::write_text(
        "troupe: failure: some failures could not be reported: out of memory");
  }
}

// Prints nothing if an exception leaves the runtime's scope: the program may have been about to
// call run().
void runtime_core::print_never_run(std::uint64_t lost) noexcept {
  if (lost == 0 || run_stage_.was_entered() || std::uncaught_exceptions() != 0) return;
  char text[256];
  std::snprintf(text, sizeof text,
                "troupe: ~runtime: run() was never called: %llu message%s for %s lost; call run(), "
                "run_once() or poll() before the "
                "runtime ends",
                static_cast<unsigned long long>(lost), lost == 1 ? "" : "s",
                simulated_ != nullptr    ? "a simulated program, which runs inside it, are"
                : inside_run_ != nullptr ? "a program of one thread, which runs inside it, are"
                                         : "actors of the main thread are");
  failure_lines::write_text(text);
}

void runtime_core::make_executors(std::unique_ptr<sched::choice_source> source) {
  sched::runtime_host& self = *this;
  sched::executor* main_lane = nullptr;
  // The executors are installed before the pool's threads start to look at them.
  const auto install = [&](std::size_t index, sched::executor& executor) {
    // order: release  publishes the executor; pairs with actor_system::executor_of
    system->executors[index].store(&executor, std::memory_order_release);
  };
  if (options.policy == policy::simulated) {
    auto executor = std::make_unique<sched::simulated>(options.seed, alive_, std::move(source));
    simulated_ = executor.get();
    main_lane = &simulated_->add_lane();
    pool = std::move(executor);
  } else if (options.policy == policy::one_thread) {
    auto executor = std::make_unique<sched::work_stealing>(
        sched::work_stealing_options{1, options.seed, clock.get()}, alive_, self);
    inside_run_ = executor.get();
    main_lane = executor.get();
    clock->notify(*executor);
    pool = std::move(executor);
  } else {
    main_ = std::make_unique<sched::thread_executor>(alive_, self, &wakes_);
    main_lane = main_.get();
    if (options.policy == policy::shared_queue) {
      pool = std::make_unique<sched::shared_queue>(options.workers, alive_, self);
    } else {
      pool = std::make_unique<sched::work_stealing>(
          sched::work_stealing_options{options.workers, options.seed, nullptr}, alive_, self);
    }
  }
  io.choice = static_cast<std::uint8_t>(options.io);
  io.pool = pool.get();
  io.simulation = simulated_;
  install(main_index, *main_lane);
  install(0, *pool);
  jobs = std::make_unique<jobs::job_pool>(
      *system, *pool, options.workers,
      jobs::job_pool_options{options.queued_lazies, options.serial_lazies, options.resource_bytes,
                             options.steal_lazies});
}

runtime_core::~runtime_core() = default;

// Ends the runtime, in this order: no actor is woken any longer; timers and blocking calls end;
// pinned threads stop running turns; the pool ends; pinned threads destroy their actors; then the
// main thread's actors and the pool's are destroyed, and the system goes. Other threads may send to
// actors and drop refs meanwhile. The user must see to it that no thread uses the runtime itself.
void runtime_core::shut_down() {
  runtimes_of_process().remove(*this, [] {});
  tasks::main_lanes::set_search(system->main_lane, {});
  // order: relaxed  the threads that must see it are stopped and joined below
  system->discard(true);
  system->close();
  // order: relaxed  a statistic
  const auto dead_letters = [this] { return system->dead_letters.load(std::memory_order_relaxed); };
  std::uint64_t lost_from = dead_letters();
  if (inside_run_ != nullptr) discard_in_caller();
  clock->shut_down();
  system->deadlocks->shut_down();
  aside.shut_down();
  {
    std::lock_guard lock(pinned_mutex_);
    ending_ = true;
  }
  // Handlers and destructors still run for a while, but start no threads any longer.
  for (auto& thread : pinned_) {
    // order: release  seen when the thread wakes; the parker orders the rest
    thread->ending.store(true, std::memory_order_release);
    thread->executor.poke();
    thread->stopped.wait();
  }
  pool->shut_down();
  attached.close();
  for (auto& thread : pinned_) {
    thread->end_now.notify();
    thread->thread.join();
  }
  if (main_) {
    // the pool has handled or discarded its mail by now: letters lost from here on needed run()
    lost_from = dead_letters();
    main_->discard_all();
  }
  print_never_run(dead_letters() - lost_from);
  for (const auto& [name, index] : pinned_indices_) {
    if (simulated_ != nullptr) actor::destroy_actors(*system, index);
  }
  actor::destroy_actors(*system, main_index);
  actor::destroy_actors(*system, 0);
  system->left.end_all();
  attached.clear();
  clock->expire_all();
  io.give_up();
  jobs.reset();
  system->observes_dead_letters = false;
  const std::uint8_t lane = system->main_lane;
  hide_from_debugger(*system);
  actor::destroy_actor_system(*system);
  tasks::main_lanes::give_back(lane);
  lines.tell_left_out();
  print_unheard();
  failures.end();
  trace.reset();
}

// The pool has no thread that discards the mail for whose answers blocking calls and pinned threads
// may wait. Turns that follow each other without an end are given up after a second.
void runtime_core::discard_in_caller() {
  const std::int64_t last_ns = base::now_ns() + 1'000'000'000;
  while (base::now_ns() < last_ns && inside_run_->caller().work(base::now_ns(), rounds::one)) {
  }
}

runtime_core::pinned_thread::pinned_thread(runtime_core& core, std::uint16_t index)
    : core(core), index(index), executor(core.alive_, core), thread([this] { live(); }) {}

void runtime_core::pinned_thread::live() {
  // order: acquire  pairs with shut_down/release
  while (!ending.load(std::memory_order_acquire)) {
    if (!executor.run_one()) executor.wait();
  }
  stopped.notify();
  end_now.wait();
  executor.discard_all();
  actor::destroy_actors(*core.system, index);
}

std::uint16_t runtime_core::pinned_index(const std::string& name) {
  std::lock_guard lock(pinned_mutex_);
  if (const auto known = pinned_indices_.find(name); known != pinned_indices_.end())
    return known->second;
  // The runtime ends: an actor for a pinned thread of its own will never be constructed.
  if (ending_) return main_index;
  const std::size_t index = main_index + 1 + pinned_indices_.size();
  if (index >= actor::actor_system::executors_max) {
    throw option_error("troupe: pinned(\"" + name +
                       "\"): there are 1000 pinned threads already; let actors share them");
  }
  const auto place = pinned_indices_.try_emplace(name, static_cast<std::uint16_t>(index)).first;
  sched::executor* lane = nullptr;
  try {
    lane = &make_lane(name, static_cast<std::uint16_t>(index));
  } catch (...) {
    pinned_indices_.erase(place);
    throw;
  }
  // order: release  publishes the executor; pairs with actor_system::executor_of
  system->executors[index].store(lane, std::memory_order_release);
  return static_cast<std::uint16_t>(index);
}

sched::executor& runtime_core::make_lane(const std::string& name, std::uint16_t index) {
  if (simulated_ != nullptr) return simulated_->add_lane();
  // The thread starts last: nothing may throw once it runs.
  if (pinned_.size() == pinned_.capacity()) pinned_.reserve(2 * pinned_.size() + 1);
  const std::string shown = name.substr(0, 15);
  pinned_.push_back(std::make_unique<pinned_thread>(*this, index));
  ::pthread_setname_np(pinned_.back()->thread.native_handle(), shown.c_str());
  return pinned_.back()->executor;
}

actor::placement detail::place_in(actor::actor_system& system, const spawn_options& chosen) {
  if (chosen.turn.time.count() < 0 ||
      (chosen.turn.messages == 0 && chosen.turn.time.count() != 0)) {
    throw option_error(
        "troupe: spawn_options::turn: messages must be at least 1 when a time is set, and time not "
        "negative");
  }
  actor::placement where{system};
  if (chosen.on_error == error_policy::restart &&
      (chosen.restart.times == 0 || chosen.restart.per < std::chrono::milliseconds(1) ||
       chosen.restart.backoff.count() < 0)) {
    throw option_error(
        "troupe: spawn_options::restart: times must be at least 1, per at least 1 ms, backoff not "
        "negative");
  }
  where.on_error = chosen.on_error;
  where.restart = &chosen.restart;
  where.parent = chosen.parent.cell();
  if (where.parent != nullptr && &actor::actor_system::of(*where.parent) != &system) {
    throw option_error(
        "troupe: spawn_options::parent: it is an actor of another runtime; give an actor of this "
        "one");
  }
  where.turn_messages = chosen.turn.messages;
  where.turn_ns = chosen.turn.time.count();
  where.mailbox_messages = chosen.mailbox.messages;
  where.when_full = static_cast<std::uint8_t>(chosen.mailbox.when_full);
  if (chosen.rolls_back && !chosen.context) {
    throw option_error(
        "troupe: spawn_options::rolls_back: there is nothing to roll back; set a context as well");
  }
  where.context = chosen.context ? &*chosen.context : nullptr;
  where.rolls_back = chosen.rolls_back;
  where.name = chosen.name.text();
  where.has_options = true;
  return where;
}

actor::placement runtime_core::placement_of(const spawn_options& chosen) const {
  return detail::place_in(*system, chosen);
}

actor::placement runtime_core::placement_of(const on_thread& chosen) {
  actor::placement where = placement_of(chosen.options());
  where.executor = chosen.name().empty() ? main_index : pinned_index(chosen.name());
  return where;
}

void runtime_core::post(unique_function<void()> procedure) {
  if (!procedure)
    throw usage_error("troupe: post: the procedure is empty; give it something to call");
  post_made([&]() -> sched::runnable& { return make_posted(*system, std::move(procedure)); });
}

void runtime_core::wake_main() noexcept {
  if (simulated_ != nullptr) {
    simulated_->poke();
  } else if (inside_run_ != nullptr) {
    inside_run_->caller().ask_back();
  } else if (main_) {
    main_->poke();
  }
}

// The program is out of work: the stop has ended, messages arrive and holds count again.
void runtime_core::end_stop() {
  // order: relaxed  the next message is sent by this thread or by one that sees run() returned
  system->discard(false);
  std::lock_guard lock(holds_mutex_);
  if (hold_stage_.count_again()) count_holds();
}

// A stop whose deadline has passed lasts until everything that it discards is destroyed. Only then
// do holds count again and messages arrive. That may happen while no thread is in run().
bool runtime_core::end_overdue() noexcept {
  std::lock_guard lock(holds_mutex_);
  if (!hold_stage_.end_overdue()) return false;
  // order: relaxed  a sender learns of this only by a run() that returns
  system->discard(false);
  count_holds();
  return true;
}

void runtime_core::out_of_work() noexcept {
  end_overdue();
  wake_main();
}

void runtime_core::discard_mail() {
  // order: relaxed  a thread that sees it late handles a few messages more
  system->discard(true);
  tasks::notice_stop(*system);
}

// Carries out a stop that was asked for. Throws deadline_error when its deadline has passed and
// work is left.
void runtime_core::carry_out_stop() {
  std::optional<stop_request> request;
  {
    std::lock_guard lock(stop_mutex_);
    request = stop_;
  }
  if (!request) return;
  ignore_holds();
  if (request->mode == stop_mode::discard) discard_mail();
  if (std::chrono::steady_clock::now() < request->deadline || alive_.empty()) return;
  discard_mail();
  {
    std::lock_guard lock(holds_mutex_);
    // An overdue stop before this one may have ended since.
    if (hold_stage_.ignore() && holds_ != 0) static_cast<void>(alive_.leave(holds_));
    hold_stage_.set_overdue();
  }
  // it became empty just now, and no other thread will end the stop
  if (alive_.empty()) end_overdue();
  throw deadline_error("troupe: stop: the deadline passed with handlers still running: " +
                       running() + "; the queued messages are discarded");
}

void runtime_core::stop(stop_mode mode, std::chrono::nanoseconds deadline) {
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(stop_mutex_);
    // Of two calls the stricter counts.
    const auto until =
        now + std::clamp<std::chrono::nanoseconds>(deadline, std::chrono::nanoseconds(0),
                                                   std::chrono::hours(24 * 365));
    if (!stop_) {
      stop_ = stop_request{mode, until};
    } else {
      if (mode == stop_mode::discard) stop_->mode = mode;
      stop_->deadline = std::min(stop_->deadline, until);
    }
    // order: relaxed  the notify below makes the main thread look
    stop_asked_.store(true, std::memory_order_relaxed);
  }
  wake_main();
}

void runtime_core::hold() noexcept {
  std::lock_guard lock(holds_mutex_);
  ++holds_;
  if (!hold_stage_.are_ignored()) alive_.enter();
}

void runtime_core::release() noexcept {
  std::lock_guard lock(holds_mutex_);
  --holds_;
  if (!hold_stage_.are_ignored() && alive_.leave()) wake_main();
}

void runtime_core::ignore_holds() noexcept {
  std::lock_guard lock(holds_mutex_);
  if (hold_stage_.ignore() && holds_ != 0 && alive_.leave(holds_)) wake_main();
}

// The caller holds holds_mutex_.
void runtime_core::count_holds() noexcept {
  if (holds_ != 0) alive_.enter(holds_);
}

std::chrono::nanoseconds runtime_core::now() const {
  return std::chrono::nanoseconds(clock->now_ns() - system->began_ns);
}

std::chrono::nanoseconds now() {
  const actor::actor_system& home = actor::running_system("now");
  return std::chrono::nanoseconds(tasks::now_ns(*home.host.clock) - home.began_ns);
}

std::shared_ptr<observing::component_list> observing::components_here(const char* caller) {
  return static_cast<runtime_core&>(actor::running_system(caller).runtime).components;
}

// ---- run(), and rounds of it for a program that has a loop of its own ----

namespace {

constexpr std::size_t stalled_lines_max = 100;
constexpr int turns_a_round = 64;

}  // namespace

// Simulated: I/O may complete between any two turns, and timers may expire there, since turns take
// time.
bool runtime_core::step_main() {
  if (inside_run_ != nullptr) return false;  // wait_main() runs the turns
  if (simulated_ == nullptr) return main_->run_one();
  clock->expire();
  return (simulated_->has_io() && simulated_->choose(sched::choice_kind::look_at_io, 4) == 0 &&
          simulated_->poll_io()) ||
         simulated_->step();
}

// Simulated: when nothing else is left to do, the time moves to the next timer at once. A stop does
// not wait for timers.
bool runtime_core::pass_time() {
  // order: relaxed  a hint; the next look sees it
  if (simulated_ == nullptr || stop_asked_.load(std::memory_order_relaxed) || alive_.empty())
    return false;
  if (simulated_->poll_io()) return true;
  const auto timer = clock->next_ns(), completion = simulated_->next_io_ns();
  if (!timer && !completion) return false;
  const std::int64_t next_ns = std::min(timer.value_or(INT64_MAX), completion.value_or(INT64_MAX));
  // bytes on the simulated network arrive soon, and need no real time
  if (next_ns == completion || !simulated_->wait_outside(next_ns)) simulated_->advance_to(next_ns);
  clock->expire();
  return true;
}

// A thread that looks at an actor for a dump may find that mail came for it meanwhile: the actor
// becomes work only when that thread lets it go. `looking` is therefore taken, and the count
// checked again.
bool runtime_core::is_out_of_work() {
  if (!alive_.empty()) return false;
  const std::lock_guard wait(system->looking);
  return alive_.empty();
}

// Turns that wait for each other: one of them gets an error, and continues. Not before a stop,
// which may end them.
bool runtime_core::tells_of_deadlock() {
  // order: relaxed  a hint; a program that is being stopped gets no error for waits that it ends
  if (stop_asked_.load(std::memory_order_relaxed)) return false;
  return system->deadlocks->search() != 0 || !is_out_of_work();
}

// Under policy::one_thread this runs the turns as well: so many rounds of them.
void runtime_core::wait_main(std::chrono::nanoseconds at_most, rounds inside_run) {
  using namespace std::chrono;
  steady_clock::time_point limit = steady_clock::time_point::max();
  if (at_most < hours(24 * 365)) limit = steady_clock::now() + at_most;
  {
    std::lock_guard lock(stop_mutex_);
    if (stop_) limit = std::min(limit, stop_->deadline);
  }
  if (inside_run_ != nullptr) {
    const bool is_limited = limit != steady_clock::time_point::max();
    const std::int64_t until_ns =
        is_limited ? base::now_ns() + nanoseconds(limit - steady_clock::now()).count() : INT64_MAX;
    inside_run_->caller().work(until_ns, inside_run);
  } else if (simulated_ != nullptr) {
    // Limited to a day: some libraries add to the limit and overflow.
    simulated_->wait_until(std::min(limit, steady_clock::now() + hours(24)));
  } else if (limit == steady_clock::time_point::max()) {
    main_->wait();
  } else {
    main_->wait_for(
        std::max(nanoseconds(1), duration_cast<nanoseconds>(limit - steady_clock::now())));
  }
}

int runtime_core::wake_descriptor() {
  if (inside_run_ != nullptr) {
    throw usage_error(
        "troupe: wake_descriptor: policy::one_thread has none: its timers and I/O are served only "
        "inside run(), run_once() and poll(); call poll() at intervals, or use another policy");
  }
  return wakes_.open();
}

// The main thread leaves for a loop of the user's own, in which its descriptor wakes it. A
// simulation cannot find out whether it has something to do without doing it.
void runtime_core::go_elsewhere() noexcept {
  if (main_ != nullptr) {
    main_->begin_wait_elsewhere();
  } else {
    wakes_.ring();
  }
}

void runtime_core::come_back() noexcept {
  if (main_ != nullptr) {
    main_->end_wait_elsewhere();
  } else {
    wakes_.clear();
  }
}

// Inside run(): one thread at a time, and none that runs a handler.
class runtime_core::entry {
 public:
  explicit entry(runtime_core& core) : core_(core) {
    if (tasks::is_running()) {
      throw usage_error(
          "troupe: run() was called in a handler: it would wait for that very handler; send a "
          "message instead");
    }
    if (!core.run_stage_.enter()) {
      throw usage_error("troupe: run() is running on another thread already");
    }
    tasks::main_lanes::enter(core.system->main_lane);
    if (core.inside_run_ != nullptr) magazines_.emplace(*core.system);
    if (core.wakes_.is_open()) core.come_back();
  }
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
  ~entry() {
    if (answers_stop) core_.forget_stop();
    magazines_.reset();
    tasks::main_lanes::leave(core_.system->main_lane);
    if (core_.wakes_.is_open()) {
      // A round that throws may have left a stop, the end or another failure to the next round.
      if (throws() && core_.main_ != nullptr) core_.main_->poke();
      core_.go_elsewhere();
    }
    core_.run_stage_.leave();
  }
  bool answers_stop = true;  // a stop() counts for the run that it ends

 private:
  bool throws() const noexcept { return std::uncaught_exceptions() > uncaught_; }
  runtime_core& core_;
  std::optional<actor::caller_magazines> magazines_;
  const int uncaught_ = std::uncaught_exceptions();
};

void runtime_core::run() {
  const entry entered(*this);
  const bool stopped = run_until_out_of_work();
  lines.tell_left_out();
  failures.throw_first();
  if (!stopped) throw_stalled();
  tell_out_of_work();
}

// To a search for schedules that fail (sched/exploring).
void runtime_core::tell_out_of_work() {
  if (simulated_ == nullptr) return;
  // order: relaxed  a statistic
  simulated_->out_of_work(system->dead_letters.load(std::memory_order_relaxed));
}

void runtime_core::forget_stop() {
  std::lock_guard lock(stop_mutex_);
  stop_.reset();
  // order: relaxed  a hint under its mutex
  stop_asked_.store(false, std::memory_order_relaxed);
}

void runtime_core::throw_stalled() {
  if (tasks::suspended_turns(*system) == 0 && system->guards.empty()) return;
  const actor::suspended_text which = actor::describe_suspended(*system, stalled_lines_max, false);
  if (which.count == 0) return;
  if (options.observe) stalls.note(which.count, which.lines);
  throw stalled("troupe: run: out of work, while turns are still suspended:" + which.lines);
}

// One round, for a loop of the user's own. False when that was the last one.
bool runtime_core::run_round(std::chrono::nanoseconds at_most) {
  entry round(*this);
  round.answers_stop = false;
  if (!step_all() && at_most.count() > 0 && !alive_.empty()) {
    wait_main(at_most, rounds::one);
    if (inside_run_ == nullptr) step_all();
  }
  failures.throw_first();
  // order: relaxed  a hint; the next round sees it
  const bool stopping = stop_asked_.load(std::memory_order_relaxed);
  round.answers_stop = stopping;  // if its deadline has passed
  if (stopping) carry_out_stop();
  if (!alive_.empty() || end_overdue() || !is_out_of_work() || tells_of_deadlock()) {
    round.answers_stop = false;
    return true;
  }
  end_stop();
  if (!stopping) throw_stalled();
  tell_out_of_work();
  return false;
}

// Does the main thread's work that is due now: at most one round of its queue. False when there was
// none.
bool runtime_core::step_all() {
  if (inside_run_ != nullptr) return inside_run_->caller().work(base::now_ns(), rounds::one);
  bool any = false;
  for (int turns = 0; turns < turns_a_round && (step_main() || pass_time()); ++turns) any = true;
  return any;
}

// Runs until the program is out of work, or a stop ends the run. True when a stop() was asked for.
bool runtime_core::run_until_out_of_work() {
  for (;;) {
    // order: relaxed  a hint; the thread that sets it wakes this thread
    if (stop_asked_.load(std::memory_order_relaxed)) carry_out_stop();
    if (step_main() || pass_time()) continue;
    if (!alive_.empty()) {
      wait_main(std::chrono::nanoseconds::max(), rounds::all);
    } else if (!end_overdue() && is_out_of_work()) {  // else holds may count again
      if (tells_of_deadlock()) continue;
      break;
    }
  }
  end_stop();
  // order: relaxed  set before the program was out of work, and so seen
  return stop_asked_.load(std::memory_order_relaxed);
}

// ---- the current work and waits of a running program, in words ----

namespace {

constexpr std::size_t dumped_lines_max = 1'000;

std::string counted(std::size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace

// The handlers that run, and the blocking calls, which run or wait for a thread.
std::string runtime_core::running() const {
  // order: relaxed  a snapshot
  const std::size_t calls = blocking_calls_.load(std::memory_order_relaxed);
  const std::string names = actor::running_handlers(*system);
  if (calls == 0) return names;
  const std::string side_calls =
      calls == 1 ? "a blocking call" : std::to_string(calls) + " blocking calls";
  return names == "none" ? side_calls : names + "; " + side_calls;
}

std::string runtime_core::dump() {
  const actor::actor_system::gate_guard gate(*system);
  if (!gate.let_in()) return "troupe: dump: the runtime is ending\n";
  const tasks::timer_counts timers = clock->count(&system->deadlocks->own_timer());
  std::size_t holds = 0;
  {
    std::lock_guard lock(holds_mutex_);
    holds = static_cast<std::size_t>(holds_);
  }
  holds -= std::min(holds, static_cast<std::size_t>(timers.holds));  // the timers' own
  std::string text = "troupe: dump: " + counted(pool->workers(), "worker") + ", " +
                     counted(pool->queued(), "turn") + " queued, " +
                     counted(timers.armed, "timer") + " armed, " + counted(holds, "hold") + ", " +
                     // order: relaxed  a statistic
                     counted(system->dead_letters.load(std::memory_order_relaxed), "dead letter") +
                     "\n  running: " + running();
  const actor::suspended_text waiting = actor::describe_suspended(*system, dumped_lines_max, true);
  text += "\n  suspended: " + std::to_string(waiting.count) + waiting.lines;
  return text + actor::describe(waiting.missed) + "\n";
}

// ---- the numbers of a running program ----

namespace {

using tasks::counted;

// A count that other threads lower may be read before the one that they raise: a difference may
// therefore be negative for an instant.
std::uint64_t not_negative(std::int64_t n) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
}

void add(worker_metrics& to, const worker_metrics& more) noexcept {
  for (const auto part : {&worker_metrics::turns, &worker_metrics::messages,
                          &worker_metrics::spawned, &worker_metrics::ended, &worker_metrics::lazies,
                          &worker_metrics::steals, &worker_metrics::stolen, &worker_metrics::parks,
                          &worker_metrics::woken, &worker_metrics::queued}) {
    to.*part += more.*part;
  }
}

}  // namespace

runtime_metrics runtime_core::metrics() {
  runtime_metrics now;
  for (const auto& worker : pool->count()) {
    now.workers.push_back({.turns = worker.turns,
                           .steals = worker.steals,
                           .stolen = worker.stolen,
                           .parks = worker.parks,
                           .woken = worker.wakes,
                           .queued = worker.queued});
  }
  std::int64_t suspended = 0, alive = 0;
  tasks::for_each_count(*system, [&](unsigned number, const tasks::counts& worker_counts) {
    worker_metrics& to = number != 0 && number <= now.workers.size()       ? now.workers[number - 1]
                         : simulated_ != nullptr || inside_run_ != nullptr ? now.workers.front()
                                                                           : now.others;
    add(to, {.messages = not_negative(worker_counts[counted::messages]),
             .spawned = not_negative(worker_counts[counted::spawned]),
             .ended = not_negative(worker_counts[counted::ended]),
             .lazies = not_negative(worker_counts[counted::lazies])});
    suspended += worker_counts[counted::suspended];
    alive += worker_counts[counted::spawned] - worker_counts[counted::ended];
  });
  for (const worker_metrics& worker : now.workers) add(now.total, worker);
  add(now.total, now.others);

  // order: relaxed  a statistic
  now.dead_letters = system->dead_letters.load(std::memory_order_relaxed);
  const failure_log::counts failed = failures.count();
  now.failures = failed.added;
  now.failures_dropped = failed.dropped;
  now.errors_dropped = errors_dropped_.load(std::memory_order_relaxed);  // order: relaxed  as above
  now.failures_kept = failed.kept;
  now.failure_bytes = failed.bytes;
  now.lazies_dropped = jobs->dropped();
  now.actors = not_negative(alive - internal_actors);
  now.suspended = not_negative(suspended);
  now.timers_armed = clock->count(&system->deadlocks->own_timer()).armed;
  if (const sched::poller* there = io.taken()) {
    const auto polled = there->count();
    now.io_waits = polled.waits;
    now.io_in_flight = polled.in_flight;
    now.io_open = polled.open;
  }
  now.lazies_queued = jobs->queued();
  now.resource_bytes = jobs->memory().used();
  now.resource_bytes_peak = jobs->memory().peak();
  now.blocking_calls = aside.count();
  now.up_ns = this->now().count();
  return now;
}

}  // namespace troupe
