// worker: one thread of the work-stealing pool, and its data.
//
// The biased lock guards the run queue, the deferred runnables, the events that the worker has
// fetched from the poller and not begun, and the plain members of every runnable whose
// `home_worker` is this worker. The owner enters the lock for each turn and for each
// message that it sends; a searcher revokes it now and then.
//
// Deferred deactivation: a runnable whose mailbox has just run empty keeps its activation while its
// worker is busy, since most runnables soon get mail again; then neither the wake-up nor the
// deactivation costs a locked instruction. A thread that sends mail to another worker's deferred
// runnable sends that worker a wake hint. Before the worker sleeps it deactivates all of them.
// Invariants
//   W1  `deferred_slot` of a runnable is s if and only if deferred_[s] is that runnable.
//   W2  a runnable with a slot has this worker as its home.
//   W3  a worker that sleeps has an empty queue, no deferred runnables, and no events that it has
//       fetched.
//   W4  for a deferred runnable with mail a wake hint is on its way, or deactivate_all comes before
//       the next sleep.
//   W5  `residents_` counts the runnables whose home this worker is: queued, deferred or in their
//       turn. The queue has room for all of them. Only a newcomer therefore needs memory, and may
//       be refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/invariant.hpp"
#include "base/parker.hpp"
#include "sched/biased_lock.hpp"
#include "sched/executor.hpp"
#include "sched/fetched_events.hpp"
#include "sched/stealing/run_queue.hpp"
#include "sched/stealing/wake_hint_queue.hpp"
#include "sched/waiting_operations.hpp"

namespace troupe::sched {

class worker {
 public:
  // runnables; when one more comes, the one deferred longest is deactivated
  static constexpr unsigned deferred_max = 16384;
  static constexpr unsigned steal_max = 64;  // runnables in one steal

  // Workers are never freed but reused: a sender that holds an old address may still send a wake
  // hint to a worker that has ended or that now works for another pool. That is harmless.
  static worker& take_from_free_list(sched::executor& for_pool,
                                     const std::atomic<std::uint32_t>& lonely, std::uint64_t seed);
  static void put_on_free_list(worker& ended);

  // The calling thread's worker, or null.
  static worker* current() noexcept { return current_; }
  static void set_current(worker* self) noexcept { current_ = self; }

  // Inside the lock: makes room for so many newcomers. False when memory is out.
  [[nodiscard]] TROUPE_INLINE bool make_room(std::size_t newcomers) noexcept {
    return queue.keep_room(residents_ + newcomers);
  }

  // Inside the lock: makes this worker the home of a newcomer for which there is room (W5). The
  // newcomer is then queued, or its deactivation is deferred.
  TROUPE_INLINE void adopt(runnable& item) noexcept {
    TROUPE_INVARIANT(item.deferred_slot < 0, "W1");
    ++residents_;
    // order: relaxed  read inside the lock only, or as a hint
    item.home_worker.store(this, std::memory_order_relaxed);
  }

  // Inside the lock: queues a runnable of this worker that is not in the queue.
  TROUPE_INLINE void push(runnable& item) noexcept {
    item.where = run_state::queued;
    queue.push(item);
    TROUPE_INVARIANT(queue.count() <= residents_, "W5");
  }

  // Owner, outside of the lock: queues a newcomer. False when a searcher is inside or memory is
  // out: then nothing was done.
  TROUPE_INLINE bool submit(runnable& item) noexcept {
    if (!lock.try_enter()) return false;
    const bool room = make_room(1);
    if (room) {
      adopt(item);
      push(item);
    }
    lock.leave();
    if (room && unwatched()) [[unlikely]]
      ask_for_watch();  // the running handler may take long (P11)
    return room;
  }

  // Inside the lock: this worker is no longer the runnable's home.
  void part_with(runnable& item) noexcept {
    forget(item);
    TROUPE_INVARIANT(residents_ > queue.count(), "W5");
    --residents_;
  }

  // The same for a runnable that was never deferred here.
  TROUPE_INLINE void part_with_unseen() noexcept { --residents_; }

  // Inside the lock: mail has arrived for a runnable of this worker; queues it if it is deferred.
  TROUPE_INLINE void wake_if_deferred(runnable& item) noexcept {
    const bool is_deferred = item.where == run_state::deactivation_deferred;
    item.where = is_deferred ? run_state::queued : item.where;
    queue.push_if(item, is_deferred);
  }

  // The same for urgent mail, which also wakes a waiting runnable.
  TROUPE_INLINE void wake_if_idle(runnable& item) noexcept {
    const bool idle = is_idle(item);
    item.where = idle ? run_state::queued : item.where;
    queue.push_if(item, idle);
  }

  // Whether workers sleep while there is no searcher and no timed searcher to find the work that
  // this worker has just left in its queue.
  TROUPE_INLINE bool unwatched() const noexcept {
    // order: none  keeps the compiler from moving the load up; a searcher that stops its timed
    // searches fences this processor, and then looks once more (docs/protocols/idle_workers.md).
    // Where the kernel refuses that fence this is a hint
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // order: relaxed  behind the fence
    return lonely->load(std::memory_order_relaxed) != 0;
  }
  void ask_for_watch() noexcept;
  // Owner, in a long turn: the next comparison with other queues must not wait for as many turns as
  // before, however quick those were.
  void expect_long_turns() noexcept { rebalance_after = 0; }
  // Runnables in the queue, and events that are fetched and not begun, most of which will each
  // queue a runnable. Inside the lock; a hint on other threads.
  std::size_t backlog() const noexcept { return queue.count() + fetched.count(); }
  // Whether something waits here that a search would find; a hint on other threads.
  bool has_some_left() const noexcept {
    // order: relaxed  a hint
    return backlog() != 0 ||
           (!wake_hints.empty() &&
            wake_hints.pushed() != vain_wake_hints_.load(std::memory_order_relaxed));
  }

  // Inside the lock.
  TROUPE_INLINE void defer_deactivation(runnable& item, run_state as) noexcept {
    item.where = as;
    // else it still has its slot from an earlier time
    if (item.deferred_slot < 0) add_deferred(item);
  }
  // Whether all that is deferred here has been deactivated: the worker may sleep (W4).
  bool has_deferred() const noexcept { return deferred_count_ != 0; }
  void deactivate_all() noexcept;  // queues those that have mail, deactivates the others
  // Inside the lock: queues the runnables that have mail. Returns how many hints were passed on,
  // since their new worker may be in a long handler (call attend() then), and how many were kept,
  // since their runnable is in its turn.
  struct wake_hints_taken {
    unsigned passed_on = 0, kept = 0;
  };
  wake_hints_taken take_wake_hints() noexcept;
  // Inside the lock: calls `look` for each deferred runnable that is idle. Returns how many other
  // runnables this worker has, queued or in their turn.
  std::size_t for_each_quiet(const std::function<void(runnable&)>& look);
  // Searcher, while it has revoked this worker's lock: moves runnables from the queue to `list`, at
  // most `at_most` and at most that share of the queue, for the searcher to adopt. Returns how
  // many.
  enum class share : std::uint8_t { half, all };
  unsigned give(worker& searcher, runnable*& list, share most, unsigned at_most) noexcept;

  std::size_t number = 0;               // among the pool's workers
  sched::executor* executor = nullptr;  // the pool, as the executor to which others submit
  const std::atomic<std::uint32_t>* lonely = nullptr;  // see idle_workers::lonely
  biased_lock<> lock;
  run_queue queue;
  wake_hint_queue<runnable> wake_hints;
  std::atomic<std::uint64_t> turns{0};  // written by the owner
  std::atomic<bool> busy{false};        // written by the owner; a hint for searchers
  std::thread thread;

  // Used by idle_workers and by the call; and where the worker sleeps.
  worker* next_sleeper = nullptr;
  bool called = false;
  base::parker parker;
  // The runnable that a call gave this worker (idle_workers::call_beside). The worker may read it
  // once it has seen that it was called.
  runnable* gift = nullptr;
  // a worker that has work for this one, and how long its turns seem to take
  worker* victim = nullptr;
  std::int64_t victim_turn_ns = 0;

  // Values that other workers saw of this worker last, or its own when it became busy. Hints.
  std::atomic<std::uint64_t> seen_turns{0};
  std::atomic<std::int64_t> seen_at_ns{0};

  // The owner's own.
  std::uint64_t random = 0;
  // the number of turns at which it next looks for mail from other threads
  std::uint64_t look_after = 0, looked_turns = 0;
  std::int64_t looked_at_ns = 0;
  std::uint64_t rebalance_after = 0, rebalanced_turns = 0;
  std::int64_t rebalanced_at_ns = 0, rescued_at_ns = 0, polled_at_ns = 0;
  // another worker, and how many turns that one had done when this one looked at it last
  worker* watched = nullptr;
  std::uint64_t watched_turns = 0;
  // Since this worker was last out of work, one of its actors began to wait for room in a mailbox,
  // or gave room to a sender: mail should come soon. Whether the worker awaits it depends on how
  // its earlier waits ended.
  bool expects_mail = false;
  unsigned vain_waits = 0, waits_left_out = 0;
  // how many turns were done, and when, when it was last out of work or became busy
  std::uint64_t awaited_turns = 0;
  std::int64_t awaited_at_ns = 0;
  // its last look into the poller, when it was out of work, found something
  bool io_keeps_coming = false;
  unsigned looks_into_shards = 0;
  waiting_operations::share waits;                            // of the poller; see busy_share
  std::atomic<std::uint64_t> steals{0}, stolen{0}, parks{0};  // any thread reads them
  std::atomic<std::uint64_t> begun_steals{0};  // that took something; counted before `steals`
  std::atomic<std::uint64_t> wakes{0};         // written by the threads that wake it

 private:
  void add_deferred(runnable& item) noexcept;
  void forget(runnable& item) noexcept;  // takes it out of the deferred runnables (W1)
  void deactivate_or_queue(runnable& item) noexcept;

  inline static constinit thread_local worker* current_ [[gnu::tls_model("initial-exec")]] =
      nullptr;
  std::unique_ptr<runnable*[]> deferred_;
  unsigned deferred_count_ = 0;
  std::size_t residents_ = 0;
  // how many hints had been pushed when a searcher found that all were for the running runnable
  std::atomic<std::uint64_t> vain_wake_hints_{0};
  unsigned hand_ = 0;  // which one is deactivated next when there are too many

 public:
  fetched_events fetched{lock};  // last: it is large
};

}  // namespace troupe::sched
