// job_pool: how the jobs of one runtime find threads.
//
// Each thread that submits has a queue. The pool's workers take part by runners, runnables as an
// actor's turn is one, so that jobs and actors share the workers: a runner takes jobs and parts of
// forks, its thread's newest first, then others' oldest, until there are none or its turn is over.
// There are at most as many runners as workers. Whoever submits calls one more behind a light fence
// if there is room for it, and a runner that ends looks for jobs behind a heavy one: so none is
// left without.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actor/actor_system.hpp"
#include "actor/turn/running.hpp"
#include "jobs/lazies/memory_account.hpp"
#include "jobs/pool/job_queue.hpp"
#include "jobs/pool/runner_count.hpp"
#include "sched/executor.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::jobs {

// Counts the coroutines that wait for jobs, so that the program is not out of work. It may outlive
// the pool: an outside thread runs the last job.
class wait_count {
 public:
  explicit wait_count(std::function<void(bool)> keep_alive) : keep_alive_(std::move(keep_alive)) {}
  void change(bool waits) {
    std::lock_guard lock(mutex_);
    if (keep_alive_) keep_alive_(waits);
  }
  void end() {
    std::lock_guard lock(mutex_);
    keep_alive_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void(bool)> keep_alive_;
};

struct job_pool_options {
  std::size_t queued_max = 10'000;  // jobs of one thread; what comes past it stays with its maker
  bool serial = false;              // all run in the thread that wants them
  std::size_t resource_bytes = 0;   // the limit of resources; 0: none
  // no: nobody takes from the queue of a thread that is at work on it
  bool steals = true;
};

class job_pool {
 public:
  // `keep_alive`: a coroutine waits for a job (true), and does so no more (false).
  job_pool(actor::actor_system& system, sched::executor& workers, unsigned runners_max,
           job_pool_options options, std::function<void(bool)> keep_alive);
  job_pool(const job_pool&) = delete;
  job_pool& operator=(const job_pool&) = delete;
  // When its workers have ended. What nobody has taken is dropped.
  ~job_pool();

  // The pool that the calling thread's jobs belong to: of its handler, task or job; else of the
  // runtime that it made last. Null when there is none.
  static job_pool* current() noexcept;

  // The calling thread belongs to a pool until the end of this.
  class inside {
   public:
    explicit inside(job_pool* of) noexcept;
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside();

   private:
    job_pool* const before_;
  };

  // The calling thread's queue. Throws std::bad_alloc.
  job_queue& queue_here() { return known_.pool == id_ ? *known_.queue : make_queue_here(false); }
  // The calling thread is at work on its queue until the end of this. Throws std::bad_alloc.
  class working {
   public:
    explicit working(job_pool& of, bool as_runner = false);
    working(const working&) = delete;
    working& operator=(const working&) = delete;
    ~working();
    job_queue& queue;

   private:
    const bool before_;
  };
  // The calling thread ends: another one may have its queue.
  void leave_queue() noexcept;
  // Takes the ref. False when memory is out, or the queue is full and the job not urgent.
  bool submit(job& one, job_queue& mine, bool urgent = false) noexcept;
  // A good deal of it.
  bool has_room(const job_queue& mine) const noexcept {
    return mine.count() <= options_.queued_max / 2;
  }
  bool is_serial() const noexcept { return options_.serial; }
  // Whether what a thread has made is to be queued where others find it.
  bool shares() const noexcept { return !options_.serial && options_.steals; }

  // The caller waits for a job that another thread runs: runs one that this thread has queued
  // meanwhile. False when there is none; then `wants_work`, if it is not null, is notified when
  // there is.
  bool help(const job& with, waiting_thread* wants_work) noexcept;

  // Of forks (fork_frame.cpp). Something was pushed: one more runner comes, if there is room for
  // one.
  void call_runner() noexcept;
  // Parts lie in the caller's deques, or are about to: others may take part. The caller's thread
  // has a queue.
  void offer(fork_tree& of, std::int64_t now) noexcept;
  // The oldest part that some other thread has left, of this tree if it is not null; or null.
  fork_frame* steal_part(const fork_deques& mine, const fork_tree* only) noexcept;
  // Who came for parts found none, or some: how often others are called depends on it.
  void count_call(bool in_vain) noexcept;
  // A tree begins, or has ended.
  // order: relaxed (both)  a hint for runners
  void tree_begins() noexcept { trees_.fetch_add(1, std::memory_order_relaxed); }
  void tree_has_ended() noexcept { trees_.fetch_sub(1, std::memory_order_relaxed); }
  // At the end, when the workers have ended.
  void run_parts_left() noexcept;
  bool discarding() const noexcept { return system_.discarding(); }
  // Under the simulated policy the seed decides.
  bool slice_over(std::int64_t began_ns) const noexcept;
  bool is_simulated() const noexcept { return static_cast<bool>(system_.choose_messages); }
  unsigned choose(unsigned most) const { return system_.choose_messages(most); }
  unsigned workers() const noexcept { return static_cast<unsigned>(all_runners_.size()); }

  // The caller is about to sleep, and may be one of the workers.
  void attend() noexcept { workers_.attend(); }
  memory_account& memory() noexcept { return *memory_; }
  // What a lazy threw that nobody can get.
  void report(std::exception_ptr what) noexcept;
  // One that was submitted goes; who waits for it, or wants it later, finds it cancelled.
  void drop(job& unwanted) noexcept;
  const std::shared_ptr<wait_count>& waits() const noexcept { return waits_; }
  void count_run() noexcept { actor::count(system_, actor::counted::lazies); }
  // The calling thread, which has a queue, is about to run this one, and has none under it.
  void begin_run(job& one) noexcept {
    count_run();
    if (known_.pool != id_) return;
    // order: relaxed  the next store publishes it
    known_.queue->runs_from.store(known_.queue->mark(), std::memory_order_relaxed);
    // order: release  pairs with help/acquire
    one.queues_in.store(known_.queue, std::memory_order_release);
  }
  // order: relaxed  a statistic
  void count_dropped() noexcept { dropped_.fetch_add(1, std::memory_order_relaxed); }
  std::size_t queued() const;  // now
  // order: relaxed  the same
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct runner;
  // Makes up for an offer that came too soon behind a call: who made it may be long in coming to
  // the next one.
  struct late_offer final : tasks::timer {
    explicit late_offer(job_pool& pool) noexcept : timer(&make, true), of(pool) {}
    // parts that are left make offers, too
    ~late_offer() { tasks::cancel(*of.system_.host.clock, *this); }
    static void make(timer& self) noexcept;
    job_pool& of;
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
  bool may_take_from(const job_queue& one) const noexcept;
  job* steal_job(const job_queue& mine) noexcept;
  bool run_one(job_queue& mine, fork_worker_state& parts, bool jobs_first, bool hands_on) noexcept;
  void run_job(job& one) noexcept;
  void set_aside(job& one) noexcept;
  sched::after_turn run_some(runner& self) noexcept;
  bool may_linger(runner& self) noexcept;

  actor::actor_system& system_;
  sched::executor& workers_;
  const job_pool_options options_;
  const std::shared_ptr<wait_count> waits_;
  const std::uint64_t id_;
  struct drops_ref {
    void operator()(memory_account* of) const noexcept { of->drop_ref(); }
  };
  const std::unique_ptr<memory_account, drops_ref> memory_;  // resources have refs, too
  runner_count<> runners_;
  std::vector<std::unique_ptr<runner>> all_runners_;
  std::mutex runners_mutex_;
  runner* free_runners_ = nullptr;
  std::atomic<std::uint32_t> vain_calls_{0};
  std::atomic<std::uint32_t> trees_{0};  // that have not ended
  std::atomic<std::uint64_t> dropped_{0};
  mutable std::mutex mutex_;  // of queues_; a thief holds it
  std::vector<std::unique_ptr<job_queue>> queues_;
  // of them: made for the workers, so that these need no memory
  std::vector<job_queue*> for_runners_;
  std::size_t next_victim_ = 0;
  late_offer late_{*this};
};

}  // namespace troupe::jobs
