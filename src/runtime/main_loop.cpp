// The main thread's part in a runtime: run(), and rounds of it for a program that has a loop of its
// own.
#include "actor/waits/suspended.hpp"
#include "runtime/runtime_core.hpp"
#include "task/main_lanes.hpp"
#include "task/running/running.hpp"
#include "troupe/base/error.hpp"

namespace troupe {
namespace {

constexpr std::size_t stalled_lines_max = 100;
constexpr int turns_a_round = 64;

}  // namespace

// Simulated: I/O may complete between any two turns, and timers may expire there, since turns take
// time.
bool runtime_core::step_main() {
  if (simulated_ == nullptr) return main_->run_one();
  clock->expire();
  return (simulated_->has_io() && simulated_->choose(4) == 0 && simulated_->poll_io()) ||
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
  simulated_->advance_to(std::min(timer.value_or(INT64_MAX), completion.value_or(INT64_MAX)));
  clock->expire();
  return true;
}

// A thread that looks at an actor for a dump may find that mail came for it meanwhile: the actor
// becomes work only when that thread lets it go. So `looking` is taken, and the count checked
// again.
bool runtime_core::is_out_of_work() {
  if (!alive_.empty()) return false;
  const std::lock_guard wait(system->looking);
  return alive_.empty();
}

// Turns that wait for each other: one of them is told, and continues. Not before a stop, which may
// end them.
bool runtime_core::tells_of_deadlock() {
  // order: relaxed  a hint; a program that is being stopped is not told of what the stop ends
  if (stop_asked_.load(std::memory_order_relaxed)) return false;
  return system->deadlocks.search() != 0 || !is_out_of_work();
}

void runtime_core::wait_main() {
  using namespace std::chrono;
  steady_clock::time_point limit = steady_clock::time_point::max();
  {
    std::lock_guard lock(stop_mutex_);
    if (stop_) limit = stop_->deadline;
  }
  if (simulated_ != nullptr) {
    // Limited to a day: some libraries add to the limit and overflow.
    simulated_->wait_until(std::min(limit, steady_clock::now() + hours(24)));
  } else if (limit == steady_clock::time_point::max()) {
    main_->wait();
  } else {
    main_->wait_for(
        std::max(nanoseconds(1), duration_cast<nanoseconds>(limit - steady_clock::now())));
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
    // order: acq_rel  a run takes over from the one before it
    if (core.running_.exchange(true, std::memory_order_acq_rel)) {
      throw usage_error("troupe: run() is running on another thread already");
    }
    core.has_run_ = true;
    tasks::main_lanes::enter(core.system->main_lane);
  }
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
  ~entry() {
    if (answers_stop) core_.forget_stop();
    tasks::main_lanes::leave(core_.system->main_lane);
    // order: release  hands over to the next run
    core_.running_.store(false, std::memory_order_release);
  }
  bool answers_stop = true;  // a stop() counts for the run that it ends

 private:
  runtime_core& core_;
};

void runtime_core::run() {
  const entry here(*this);
  const bool stopped = run_until_out_of_work();
  lines.tell_left_out();
  failures.throw_first();
  if (!stopped) throw_stalled();
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
  if (which.count != 0)
    throw stalled("troupe: run: out of work, while turns are still suspended:" + which.lines);
}

// One round, for a loop of the user's own. False when that was the last one.
bool runtime_core::run_round(bool may_wait) {
  entry here(*this);
  here.answers_stop = false;
  if (!step_all() && may_wait && !alive_.empty()) {
    wait_main();
    step_all();
  }
  failures.throw_first();
  // order: relaxed  a hint; the next round sees it
  const bool stopping = stop_asked_.load(std::memory_order_relaxed);
  here.answers_stop = stopping;  // if its deadline has passed
  if (stopping) carry_out_stop();
  if (!alive_.empty() || end_overdue() || !is_out_of_work() || tells_of_deadlock()) {
    here.answers_stop = false;
    return true;
  }
  end_stop();
  if (!stopping) throw_stalled();
  return false;
}

// Does what the main thread has to do now: at most one round of its queue. False when there was
// nothing.
bool runtime_core::step_all() {
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
      wait_main();
    } else if (!end_overdue() && is_out_of_work()) {  // else holds may count again
      if (tells_of_deadlock()) continue;
      break;
    }
  }
  end_stop();
  // order: relaxed  set before the program was out of work, and so seen
  return stop_asked_.load(std::memory_order_relaxed);
}

}  // namespace troupe
