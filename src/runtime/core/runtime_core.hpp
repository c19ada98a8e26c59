// runtime_core: the parts of a runtime, and how they start and end.
//
// The runtime and its holds keep it alive; the actors' system outlives it while refs are left.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actor/system/actor_host.hpp"
#include "actor/system/actor_system.hpp"
#include "base/parker.hpp"
#include "jobs/pool/job_pool.hpp"
#include "observe/ticks.hpp"
#include "observe/trace_session.hpp"
#include "runtime/failures/failure_lines.hpp"
#include "runtime/failures/failure_log.hpp"
#include "runtime/failures/stall_notes.hpp"
#include "runtime/observing/numbers/component_list.hpp"
#include "runtime/run_stages.hpp"
#include "runtime/services/attachments.hpp"
#include "runtime/services/side_pool.hpp"
#include "sched/executor.hpp"
#include "sched/io_driver_slot.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/policies/simulated.hpp"
#include "sched/policies/thread_executor.hpp"
#include "sched/stealing/work_stealing.hpp"
#include "sched/wake_descriptor.hpp"
#include "task/running/running.hpp"
#include "task/timers/timers.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/runtime/metrics.hpp"
#include "troupe/runtime/options.hpp"
#include "troupe/runtime/timer.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {

class runtime_core final : public std::enable_shared_from_this<runtime_core>,
                           public actor::actor_host {
 public:
  explicit runtime_core(runtime_options chosen);
  ~runtime_core();
  void shut_down();

  // index in the system's executors
  static constexpr std::uint16_t main_index = actor::actor_system::main_executor;
  static constexpr std::int64_t internal_actors = 1;  // the main thread's slot

  void run();
  // Waits for at most that span if there is nothing to do.
  bool run_round(std::chrono::nanoseconds at_most);
  int wake_descriptor();
  void stop(stop_mode mode, std::chrono::nanoseconds deadline);
  void hold() noexcept override;
  void release() noexcept override;
  void post(unique_function<void()> procedure);
  // Posts the runnable that `make` returns. Returns false, and does not call `make`, when the
  // runtime takes no procedure any more.
  template <class Make>
  bool post_made(Make make);
  // in_turns: the calls are turns of the actor whose handler runs, and no procedures of the pool.
  timer after(std::chrono::nanoseconds span, unique_function<void()>&& procedure,
              const timer_options& chosen, bool in_turns = false);
  timer every(std::chrono::nanoseconds period, unique_function<void()>&& procedure,
              const timer_options& chosen, bool in_turns = false);
  actor::placement placement_of(const spawn_options& chosen) const;
  actor::placement placement_of(const on_thread& chosen);
  std::chrono::nanoseconds now() const;
  std::string dump();
  runtime_metrics metrics();

  // first to be constructed, last to be destroyed
  std::optional<observe::trace_session> trace{std::in_place};
  const runtime_options options;
  const observe::tick_scale observed_since;
  failure_log failures{options.failures_kept, options.failure_bytes};
  failure_lines lines{options.failure_lines};
  stall_notes stalls;                 // of an observed runtime
  actor::actor_system* const system;  // deletes itself (actor_system.hpp)
  std::unique_ptr<sched::policy> pool;
  std::unique_ptr<tasks::timers> clock;
  sched::io_driver_slot io{*this};
  side_pool aside;
  std::unique_ptr<jobs::job_pool> jobs;
  const std::shared_ptr<observing::component_list> components =
      std::make_shared<observing::component_list>();
  detail::attachments attached;

 private:
  // A pinned thread ends in two steps: first all pinned threads stop running turns, then each
  // destroys its actors, one thread after the other (actor/system/actor_system.hpp).
  struct pinned_thread {
    pinned_thread(runtime_core& core, std::uint16_t index);
    void live();
    runtime_core& core;
    const std::uint16_t index;
    sched::thread_executor executor;
    std::atomic<bool> ending{false};
    base::parker stopped;  // the thread that ends the runtime waits here
    base::parker end_now;
    std::thread thread;
  };
  // A call of stop() that no run() has answered yet.
  struct stop_request {
    stop_mode mode;
    std::chrono::steady_clock::time_point deadline;
  };

  // The functions for the layers below.
  void out_of_work() noexcept override;
  std::int64_t now_ns() const noexcept override;
  void run_aside(unique_function<void()> procedure) override;
  void report(sched::message::handler describes, std::exception_ptr failure) noexcept override;
  void report_dropped(const std::exception_ptr& failure) noexcept override;
  unsigned choose_limit(unsigned most) noexcept override;
  std::uint64_t choose_number() noexcept override;
  sched::fault storage_fault(sched::fault_point where, sched::lineage* storage) override;
  std::uint32_t choose_case(std::uint32_t count) noexcept override;
  bool is_observed() const noexcept override { return options.observe; }
  void failed(const actor::failed_call& where, std::exception_ptr thrown) noexcept override;
  void dead_letter(const actor::failed_call& where) noexcept override;
  void escalated() noexcept override;
  void run_blocking(unique_function<void()> call) override;

  void make_executors(std::unique_ptr<sched::choice_source> source);
  static void on_dropped_outside(const std::exception_ptr& failure) noexcept;
  bool print(const actor::failed_call& where, const std::exception_ptr& failure) noexcept;
  void print_unheard() noexcept;
  void print_never_run(std::uint64_t lost) noexcept;
  std::uint16_t pinned_index(const std::string& name);
  sched::executor& make_lane(const std::string& name, std::uint16_t index);
  void wake_main() noexcept;
  bool step_main();
  void wait_main(std::chrono::nanoseconds at_most, sched::rounds inside_run);
  void go_elsewhere() noexcept;
  void come_back() noexcept;
  bool pass_time();
  bool is_out_of_work();
  bool tells_of_deadlock();
  class entry;
  bool run_until_out_of_work();
  bool step_all();
  void forget_stop();
  void end_stop();
  void throw_stalled();
  void tell_out_of_work();
  std::string running() const;
  void carry_out_stop();
  bool end_overdue() noexcept;
  void discard_mail();
  void discard_in_caller();
  void ignore_holds() noexcept;
  void count_holds() noexcept;
  timer schedule(std::chrono::nanoseconds span, unique_function<void()>&& procedure,
                 std::chrono::nanoseconds period, const timer_options& chosen, bool in_turns);

  struct lines_timer final : tasks::timer {
    explicit lines_timer(failure_lines& lines) noexcept
        : timer(&on_time, tasks::timer_source::runtime, true), lines(lines) {}
    static void on_time(timer& self) noexcept { static_cast<lines_timer&>(self).lines.on_time(); }
    failure_lines& lines;
  };
  lines_timer tells_left_out_{lines};

  sched::outstanding_work alive_;  // work, and holds unless they are ignored
  std::mutex holds_mutex_;
  std::int64_t holds_ = 0;
  hold_stage hold_stage_;  // a stop that drains does not wait for outside sources
  // calls of blocking(); the side pool also runs others
  std::atomic<std::size_t> blocking_calls_{0};

  sched::wake_descriptor wakes_;                // of the main thread
  sched::simulated* simulated_ = nullptr;       // the pool, under the simulated policy; else null
  sched::work_stealing* inside_run_ = nullptr;  // the pool, under policy::one_thread; else null
  // the main thread's queue, under the policies whose pool has threads
  std::unique_ptr<sched::thread_executor> main_;
  std::mutex pinned_mutex_;
  std::map<std::string, std::uint16_t> pinned_indices_;
  std::vector<std::unique_ptr<pinned_thread>> pinned_;  // does not change once ending_ is set
  bool ending_ = false;

  run_stage run_stage_;
  std::mutex stop_mutex_;
  std::optional<stop_request> stop_;
  std::atomic<bool> stop_asked_{false};  // a hint that stop_ has a value
  std::atomic<std::uint64_t> errors_dropped_{0};
};

template <class Make>
bool runtime_core::post_made(Make make) {
  // order: relaxed  the thread that ends the runtime is the one that runs its last destructors
  if (system->discarding() || system->closing.load(std::memory_order_relaxed)) return false;
  if (tasks::is_running(*system)) {  // the end waits for handlers and procedures
    pool->submit(make());
    return true;
  }
  // A thread of a component, such as Asio's own, posts while the runtime ends, until that joins it.
  // The end waits for the threads inside the gate before it drains the pool for the last time: a
  // procedure submitted later would never be destroyed.
  const actor::actor_system::gate_guard gate(*system);
  if (!gate.let_in()) return false;
  pool->submit(make());
  return true;
}

}  // namespace troupe
