// job_pool: how the jobs of one runtime find threads.
//
// Each thread that submits jobs has a queue. The pool's workers take part by runners: a runner is a
// runnable, like an actor's turn, so that jobs and actors share the workers. A runner takes jobs
// and parts of forks, first its own thread's newest, then other threads' oldest, until there are
// none or its turn is over. There are at most as many runners as workers. A thread that submits
// calls one more runner, if there may be one more, after a light fence; a runner that ends looks
// for jobs after a heavy fence: no job is therefore left without a runner.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "jobs/pool/job_queue.hpp"
#include "jobs/pool/lazy_counts.hpp"
#include "jobs/pool/memory_account.hpp"
#include "jobs/pool/runner_count.hpp"
#include "sched/executor.hpp"
#include "sched/runtime_host.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::jobs {

// Counts the coroutines that wait for jobs: while there are some, the program is not out of work.
// May outlive the pool, since an outside thread may run the last job.
class wait_count {
 public:
  explicit wait_count(sched::runtime_host& host) noexcept : runtime_(&host) {}
  void change(bool waits) {
    std::lock_guard lock(mutex_);
    if (runtime_ != nullptr) waits ? runtime_->hold() : runtime_->release();
  }
  void end() {
    std::lock_guard lock(mutex_);
    runtime_ = nullptr;
  }

 private:
  std::mutex mutex_;
  sched::runtime_host* runtime_;  // null once the runtime ends; guarded by the mutex
};

struct job_pool_options {
  // jobs in one thread's queue; a job beyond that stays with its maker
  std::size_t queued_max = 10'000;
  bool serial = false;             // every job runs in the thread that needs its result
  std::size_t resource_bytes = 0;  // the limit of resources; 0: none
  // false: no thread takes from the queue of a thread that is at work on it
  bool steals = true;
};

class job_pool {
 public:
  job_pool(tasks::runtime_state& runtime, sched::executor& workers, unsigned runners_max,
           job_pool_options options);
  job_pool(const job_pool&) = delete;
  job_pool& operator=(const job_pool&) = delete;
  // After its workers have ended. Drops jobs that no thread has taken.
  ~job_pool();

  // The pool for the calling thread's jobs: the pool of its handler, task or job; outside of these,
  // the pool of the youngest living runtime which the thread made. Null when there is none.
  static job_pool* current() noexcept;

  // While this lives the calling thread belongs to `pool`.
  class inside {
   public:
    explicit inside(job_pool* pool) noexcept;
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside();

   private:
    job_pool* const before_;
  };

  // The calling thread's queue. Throws std::bad_alloc.
  job_queue& queue_here() { return known_.pool == id_ ? *known_.queue : make_queue_here(false); }
  // While this lives the calling thread is at work on its queue. Throws std::bad_alloc.
  class working {
   public:
    explicit working(job_pool& pool, bool as_runner = false);
    working(const working&) = delete;
    working& operator=(const working&) = delete;
    ~working();
    job_queue& queue;

   private:
    const bool before_;
  };
  // The calling thread ends: another thread may take over its queue.
  void leave_queue() noexcept;
  // Takes the ref. False when memory is out, or when the queue is full and the job is not urgent.
  bool submit(job& item, job_queue& mine, bool urgent = false) noexcept;
  // Whether at least half of the queue is free.
  bool has_room(const job_queue& mine) const noexcept {
    return mine.count() <= options_.queued_max / 2;
  }
  bool is_serial() const noexcept { return options_.serial; }
  // Whether the jobs that a thread has made are to be queued where other threads find them.
  bool shares() const noexcept { return !options_.serial && options_.steals; }

  // For a caller that waits for the job `with`, which another thread runs: runs one job that the
  // other thread has queued meanwhile. False when there is none; then `wants_work`, if not null, is
  // notified when a job is queued.
  bool help(const job& with, waiting_thread* wants_work) noexcept;

  // For forks (fork_frame.cpp). Work was pushed: one more runner comes, if there may be one more.
  void call_runner() noexcept;
  // Parts are in the caller's deques, or will be soon: other threads may take part. The caller's
  // thread has a queue.
  void offer(fork_tree& tree, std::int64_t now) noexcept;
  // Takes the oldest part that another thread has left, within the tree `only` if that is not null.
  // Null when there is none.
  fork_frame* steal_part(const fork_deques& mine, const fork_tree* only) noexcept;
  // Owner: answers a thief that asks for a part.
  void answer(fork_deques& mine) noexcept;
  // A thread that was called for parts found none (in_vain) or some: this decides how often others
  // are called.
  void count_call(bool in_vain) noexcept;
  // A tree begins, or has ended.
  // order: relaxed (both)  a hint for runners
  void tree_begins() noexcept { trees_.fetch_add(1, std::memory_order_relaxed); }
  void tree_has_ended() noexcept { trees_.fetch_sub(1, std::memory_order_relaxed); }
  // At the end, after the workers have ended.
  void run_parts_left() noexcept;
  bool discarding() const noexcept { return runtime_.discarding(); }
  // Whether a visit that began at `began_ns` is over. Under the simulated policy the seed decides.
  bool slice_over(std::int64_t began_ns) const noexcept;
  bool is_simulated() const noexcept { return runtime_.is_simulated; }
  unsigned choose(unsigned most) const { return runtime_.runtime.choose_limit(most); }
  unsigned workers() const noexcept { return static_cast<unsigned>(all_runners_.size()); }

  // The caller, which may be a worker, is about to sleep.
  void attend() noexcept { workers_.attend(); }
  memory_account& memory() noexcept { return *memory_; }
  // Reports an exception of a lazy that no get() can throw.
  void report(std::exception_ptr failure) noexcept;
  // Drops a submitted job; threads that wait for it, or need it later, find it cancelled.
  void drop(job& unwanted) noexcept;
  const std::shared_ptr<wait_count>& waits() const noexcept { return waits_; }
  void count_run() noexcept { tasks::count(runtime_, tasks::counted::lazies); }
  // The calling thread is about to run the job, as its outermost one.
  void begin_run(job& job) noexcept {
    count_run();
    if (known_.pool != id_) return;
    // order: relaxed  the next store publishes it
    known_.queue->runs_from.store(known_.queue->mark(), std::memory_order_relaxed);
    // order: release  pairs with help/acquire
    job.queues_in.store(known_.queue, std::memory_order_release);
  }
  // order: relaxed  a statistic
  void count_dropped() noexcept { dropped_.fetch_add(1, std::memory_order_relaxed); }
  std::size_t queued() const;  // now queued
  // Null unless the runtime is observed.
  lazy_counts* counts() const noexcept { return counts_.get(); }
  // order: relaxed  the same
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct runner;
  // Makes an offer that came too soon after a call, after a delay: the thread that made it may take
  // long to come to its next one.
  struct late_offer final : tasks::timer {
    explicit late_offer(job_pool& pool) noexcept
        : timer(&make, tasks::timer_source::runtime, true), pool(pool) {}
    // remaining parts also make offers
    ~late_offer() { tasks::cancel(*pool.runtime_.host.clock, *this); }
    static void make(timer& self) noexcept;
    job_pool& pool;
    std::atomic<bool> armed{false};
  };
  struct known_queue {
    std::uint64_t pool = 0;
    job_queue* queue = nullptr;
  };
  static constinit thread_local known_queue known_ [[gnu::tls_model("initial-exec")]];
  TROUPE_NOINLINE job_queue& make_queue_here(bool as_runner);
  runner* begin_runner() noexcept;
  void hand_on() noexcept;
  std::size_t count_left(std::size_t enough) const noexcept;
  void runner_ended() noexcept;
  void offer_later() noexcept;
  bool some_left() const noexcept;
  bool may_take_from(const job_queue& queue) const noexcept;
  template <class Look>
  void visit_queues(bool from_next, const Look& look) const noexcept;
  job* steal_job(const job_queue& mine) noexcept;
  fork_frame* ask_or_steal(job_queue& victim, const fork_tree* only, bool& passes_over) noexcept;
  job_queue& add_queue();
  void note_stolen(job& item) noexcept;
  bool run_one(job_queue& mine, fork_worker_state& parts, bool jobs_first, bool hands_on) noexcept;
  void run_job(job& item) noexcept;
  void run_taken(job& job) noexcept;
  void set_aside(job& job) noexcept;
  sched::after_turn run_some(runner& self) noexcept;
  bool may_linger(runner& self) noexcept;

  tasks::runtime_state& runtime_;
  const std::unique_ptr<lazy_counts> counts_;
  sched::executor& workers_;
  const job_pool_options options_;
  const std::shared_ptr<wait_count> waits_;
  const std::uint64_t id_;
  struct drops_ref {
    void operator()(memory_account* account) const noexcept { account->drop_ref(); }
  };
  const std::unique_ptr<memory_account, drops_ref> memory_;  // resources also have refs
  runner_count<> runners_;
  std::vector<std::unique_ptr<runner>> all_runners_;
  std::mutex runners_mutex_;
  runner* free_runners_ = nullptr;
  std::atomic<std::uint32_t> vain_calls_{0};
  std::atomic<std::uint32_t> trees_{0};  // trees that have not ended
  std::atomic<std::uint64_t> dropped_{0};
  mutable std::mutex mutex_;  // guards queues_ and the queues' owners
  std::vector<std::unique_ptr<job_queue>> queues_;
  // The head of the list of all queues, for searches without the mutex. No queue leaves it.
  std::atomic<job_queue*> newest_queue_{nullptr};
  // the queues in `queues_` that were made for the workers, so that a runner needs no memory
  std::vector<job_queue*> for_runners_;
  late_offer late_{*this};
};

}  // namespace troupe::jobs
