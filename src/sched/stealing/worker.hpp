// worker: one thread of the work-stealing pool, and what it owns.
//
// The biased lock guards the run queue, the deferred runnables and the plain members of every
// runnable whose `home` is this worker. The owner enters for each turn and each message that it
// sends; a searcher revokes now and then.
//
// Deferred: a runnable whose mailbox has just run empty keeps its activation while its worker is
// busy, since most are addressed again soon; then neither the wake-up nor the rest costs a locked
// instruction. A thread that sends mail to a deferred runnable of another worker wake hints that
// worker. All are deactivated before the worker sleeps. Invariants
//   W1  `deferred_slot` of a runnable is s if and only if deferred_[s] is that runnable.
//   W2  a runnable with a slot has this worker as its home.
//   W3  a worker that sleeps has an empty queue and nothing defers its deactivation.
//   W4  a deferred runnable with mail has a wake hint on its way, or deactivate_all comes before
//   the next sleep. W5  `residents_` counts the runnables whose home this is, queued, deferred or
//   in their turn; the queue has
//       room for all of them. So only a newcomer needs memory, and may be refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/invariant.hpp"
#include "base/parker.hpp"
#include "sched/executor.hpp"
#include "sched/stealing/biased_lock.hpp"
#include "sched/stealing/run_queue.hpp"
#include "sched/stealing/wake_hint_queue.hpp"

namespace troupe::sched {

class work_stealing;

class worker {
 public:
  static constexpr unsigned deferred_max = 16384;  // runnables; then the longest there goes
  static constexpr unsigned steal_max = 64;        // runnables in one steal

  // Workers are never freed but used again: a sender with an old address may still wake hint one
  // that has ended, or that works for another pool by now, which is harmless.
  static worker& take_from_free_list(work_stealing& for_pool, sched::executor& as,
                                     const std::atomic<std::uint32_t>& lonely, std::uint64_t seed);
  static void put_on_free_list(worker& ended);

  // The worker that the calling thread is, or null.
  static worker* current() noexcept { return current_; }
  static void set_current(worker* self) noexcept { current_ = self; }

  // Inside the lock: makes room for so many newcomers. False when memory is out.
  [[nodiscard]] TROUPE_INLINE bool make_room(std::size_t newcomers) noexcept {
    return queue.keep_room(residents_ + newcomers);
  }

  // Inside the lock: a newcomer for which there is room becomes this worker's (W5), to be queued or
  // to defer their deactivation.
  TROUPE_INLINE void adopt(runnable& item) noexcept {
    TROUPE_INVARIANT(item.deferred_slot < 0, "W1");
    ++residents_;
    // order: relaxed  read inside the lock only, or as a hint
    item.home_worker.store(this, std::memory_order_relaxed);
  }

  // Inside the lock: queues one of this worker's that is not in the queue.
  TROUPE_INLINE void push(runnable& item) noexcept {
    item.where = run_state::queued;
    queue.push(item);
  }

  // The owner's, outside of the lock: queues a newcomer. False, and nothing done, when a searcher
  // is inside or memory is out.
  TROUPE_INLINE bool submit(runnable& item) noexcept {
    if (!lock.try_enter()) return false;
    const bool room = make_room(1);
    if (room) {
      adopt(item);
      push(item);
    }
    lock.leave();
    if (room && unwatched()) [[unlikely]]
      ask_for_watch();  // this handler may take long (P11)
    return room;
  }

  // Inside the lock: it is this worker's no more.
  void part_with(runnable& item) noexcept {
    forget(item);
    --residents_;
  }

  // The same of one that has never deferred its deactivation here.
  TROUPE_INLINE void part_with_unseen() noexcept { --residents_; }

  // Inside the lock: mail has come for a runnable of this worker; if it defers its deactivation, it
  // is queued.
  TROUPE_INLINE void wake_if_deferred(runnable& item) noexcept {
    const bool is_deferred = item.where == run_state::deactivation_deferred;
    item.where = is_deferred ? run_state::queued : item.where;
    queue.push_if(item, is_deferred);
  }

  // The same for urgent mail, which wakes a waiting one, too.
  TROUPE_INLINE void wake_if_idle(runnable& item) noexcept {
    const bool idle = is_idle(item);
    item.where = idle ? run_state::queued : item.where;
    queue.push_if(item, idle);
  }

  // Whether idle workers sleep and none of them would find what was left here before this.
  TROUPE_INLINE bool unwatched() const noexcept {
    // order: none  keeps the compiler from moving the load up; who stops timed fences this
    // processor, and then looks once more (docs/protocols/idle_workers.md). Where the kernel
    // refuses that this is a hint
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // order: relaxed  behind the fence
    return lonely->load(std::memory_order_relaxed) != 0;
  }
  void ask_for_watch() noexcept;
  // The owner's, in a turn that is long: however quick those before it were, the next comparison
  // with other queues does not wait for as many again.
  void expect_long_turns() noexcept { rebalance_after = 0; }
  // Whether something lies here that a search would find; a hint for others.
  bool has_some_left() const noexcept {
    // order: relaxed  a hint
    return queue.count() != 0 ||
           (!wake_hints.empty() &&
            wake_hints.pushed() != vain_wake_hints_.load(std::memory_order_relaxed));
  }

  // Inside the lock.
  TROUPE_INLINE void defer_deactivation(runnable& item, run_state as) noexcept {
    item.where = as;
    if (item.deferred_slot < 0) add_deferred(item);  // else it still has its slot from last time
  }
  void deactivate_all() noexcept;  // queues what has mail, lets the rest go
  // Queues what has mail. How many were passed on: their new worker may be long in a handler
  // (attend); and how many stay, since it is their turn that is long.
  struct wake_hints_taken {
    unsigned passed_on = 0, kept = 0;
  };
  wake_hints_taken take_wake_hints() noexcept;
  // Inside the lock.
  // Returns how many more this worker has, queued or in their turn.
  std::size_t for_each_quiet(const std::function<void(runnable&)>& look);
  // A searcher's, while it has revoked the lock: takes at most so much of the queue out, for the
  // searcher to adopt. How many.
  enum class share : std::uint8_t { half, all };
  unsigned give(worker& thief, runnable*& list, share most, unsigned at_most) noexcept;

  work_stealing* pool = nullptr;
  sched::executor* executor = nullptr;  // the pool, as what it is to those who submit
  const std::atomic<std::uint32_t>* lonely = nullptr;  // the pool's set of idle workers's
  biased_lock<> lock;
  run_queue queue;
  wake_hint_queue<runnable> wake_hints;
  std::atomic<std::uint64_t> turns{0};  // written by the owner
  std::atomic<bool> busy{false};        // written by the owner; a hint for searchers
  std::thread thread;

  // The set of idle workers's (idle_workers.hpp), and where the worker sleeps.
  worker* next_sleeper = nullptr;
  bool called = false;
  base::parker parker;
  // What the call gave it (idle_workers::call_beside); its own from when it knows that it was
  // called.
  runnable* gift = nullptr;
  worker* victim = nullptr;  // who has work for it, whose turns seem to take so long
  std::int64_t victim_turn_ns = 0;

  // What others last saw of this worker, or it itself when it became busy. Hints.
  std::atomic<std::uint64_t> seen_turns{0};
  std::atomic<std::int64_t> seen_at_ns{0};

  // The owner's own.
  std::uint64_t random = 0;
  // when it looks for mail from other threads, in turns
  std::uint64_t look_after = 0, looked_turns = 0;
  std::int64_t looked_at_ns = 0;
  std::uint64_t rebalance_after = 0, rebalanced_turns = 0;
  std::int64_t rebalanced_at_ns = 0, rescued_at_ns = 0, polled_at_ns = 0;
  // another one, which had done so many turns when this one looked at it last
  worker* watched = nullptr;
  std::uint64_t watched_turns = 0;
  // Since this worker was last out of work, one of its actors began to wait for room in a mailbox,
  // or gave room to a sender: mail is soon to come. Whether the worker awaits it follows from what
  // it found before.
  bool expects_mail = false;
  unsigned vain_waits = 0, waits_left_out = 0;
  // how many turns were done when it last was out of work, or became busy
  std::uint64_t awaited_turns = 0;
  std::int64_t awaited_at_ns = 0;
  // its last look, when it was out of work, found that something had come
  bool io_keeps_coming = false;
  std::atomic<std::uint64_t> steals{0}, stolen{0}, parks{0};  // read by anyone
  std::atomic<std::uint64_t> wakes{0};                        // written by those who wake it

 private:
  void add_deferred(runnable& item) noexcept;
  void forget(runnable& item) noexcept;  // takes it out of the deferred ones (W1)
  void deactivate_or_queue(runnable& item) noexcept;

  inline static constinit thread_local worker* current_ [[gnu::tls_model("initial-exec")]] =
      nullptr;
  std::unique_ptr<runnable*[]> deferred_;
  unsigned deferred_count_ = 0;
  std::size_t residents_ = 0;
  // as many were pushed when a searcher found that all are for the running one
  std::atomic<std::uint64_t> vain_wake_hints_{0};
  unsigned hand_ = 0;  // which one goes next when there are too many
};

}  // namespace troupe::sched
