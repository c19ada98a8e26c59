// work_stealing: the default policy. One queue for each worker, few searchers, no wake-up without
// need.
//
// A worker that submits a runnable pushes it into its own queue. Other threads submit to the inbox,
// at which every worker looks regularly. An idle worker becomes the searcher if there is none; the
// searcher takes from the inbox, and from workers that have more work than they can do soon. A
// victim keeps the work that it can do sooner than a searcher could fetch it, since a chain of
// small turns is fastest on one processor.
// Protocols: docs/protocols/idle_workers.md (sleeping), stealing.md and biased_lock.md (stealing),
// outstanding_work.md (the end).
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "sched/executor.hpp"
#include "sched/inbox.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/poller.hpp"
#include "sched/runtime_host.hpp"
#include "sched/stealing/caller_life.hpp"
#include "sched/stealing/idle_life.hpp"
#include "sched/stealing/idle_workers.hpp"
#include "sched/stealing/pace.hpp"
#include "sched/stealing/worker.hpp"

namespace troupe::sched {

struct work_stealing_options {
  unsigned workers = 1;
  std::uint64_t seed = 1;  // for the searcher's choice of victims
  // Not null: the pool starts no thread. Its only worker is the thread in caller().work(), which
  // also expires these timers.
  timekeeper* time = nullptr;
};

class work_stealing final : public policy {
 public:
  work_stealing(const work_stealing_options& options, outstanding_work& alive, runtime_host& host);
  ~work_stealing() override;

  void submit(runnable& item) noexcept override;
  void submit_to_any(runnable& item) noexcept override;
  void submit_to_sleeper(runnable& item) noexcept override;
  void shut_down() override;
  std::vector<counters> count() const override;
  void attend() noexcept override;
  not_quiet for_each_quiet(const std::function<void(runnable&)>& look) override;
  std::size_t queued() const override;
  void attach(poller& io) override;
  void expire_soon() noexcept override { caller_.expire_soon(); }

  // The thread that is the worker of a pool without a thread.
  caller_life<work_stealing, worker>& caller() noexcept { return caller_; }

  unsigned workers() const noexcept override { return static_cast<unsigned>(workers_.size()); }
  unsigned io_shards() const noexcept override {
    return static_cast<unsigned>((workers_.size() + group_workers - 1) / group_workers);
  }

 private:
  work_stealing(outstanding_work& alive, runtime_host& host, timekeeper* time) noexcept;

  // A victim whose whole queue takes less time than this is left alone: it will be done before a
  // searcher could begin. Turns shorter than short_turn_ns are hardly worth the cache lines that
  // move with them: their queue must be worth worth_stealing_short_ns.
  static constexpr std::int64_t worth_stealing_ns = 30'000, short_turn_ns = 500,
                                worth_stealing_short_ns = 300'000;
  // A searcher that has stolen from a victim with long turns calls others for the work that it
  // left, or cannot do at once, if that work takes at least this time: a call costs the searcher 12
  // µs.
  static constexpr std::int64_t worth_calling_ns = 100'000;
  // As pace::memory_ns, for a busy worker that rebalances. Longer, since turns_per_rebalance turns
  // may take long.
  static constexpr std::int64_t rebalance_memory_ns = 1'000'000'000;
  // How often a busy worker compares its queue with the others'. Where there is I/O, a worker with
  // a short queue compares more often: a worker that is alone with a connection would else answer
  // it a hundred times while others wait.
  static constexpr std::int64_t rebalance_every_ns = 1'000'000, rebalance_beside_io_ns = 100'000;
  // When it acts: another worker's backlog is at least `percent` of its own, and at least worth_ns
  // more. Connections must be answered at an equal pace (fine); other actors should rather stay
  // where their data is (coarse).
  struct imbalance {
    std::int64_t percent, worth_ns;
    unsigned looks;  // at how many other workers it looks
  };
  static constexpr imbalance coarse{200, 200'000, 1}, fine{125, 40'000, 4};
  // A worker whose actors wait for room in mailboxes awaits mail for await_mail_ns before it
  // sleeps, if their turns take awaiting_turn_ns or more. After a wait without success it skips the
  // next wait, then the next 3, then 7.
  static constexpr std::int64_t await_mail_ns = 50'000, awaiting_turn_ns = 500;
  static constexpr unsigned vain_waits_max = 3;
  static constexpr int awake_pauses = 8;  // between two looks
  // While it awaits mail it steals a quarter of a backlog that takes at least this time.
  static constexpr std::int64_t worth_stealing_awake_ns = 8'000;
  static constexpr unsigned turns_per_rebalance = 64;  // at most
  // A worker that is in one turn for this long does nothing for the runnables behind it. In most
  // cases its thread has lost its processor.
  static constexpr std::int64_t rescue_every_ns = 200'000;
  static constexpr int looks_max = 1'000;  // tries to find a worker outside of its lock
  // How often a busy worker looks into the poller, if no worker sleeps there. A worker that serves
  // thousands of connections runs out of work before that, and then takes all events that have
  // arrived; 100 µs cost 4 % more (io/echo_10k), and 1 ms is as good.
  static constexpr std::int64_t poll_every_ns = 500'000;
  // Number of turns between two looks that find work from other threads, while turns take less than
  // quick_turn_ns.
  static constexpr unsigned turns_a_look = 8;
  static constexpr std::int64_t quick_turn_ns = 5'000;

  // Workers whose numbers are near have one searcher, and one more searches for each further group
  // of this size. A searcher looks at so many victims of its group, and at so many of all, before
  // it looks at each worker.
  static constexpr std::size_t group_workers = 16;
  static constexpr unsigned near_victims = 4, far_victims = 2;

  // A worker's life, in order.
  void work(worker& self);
  bool run_queue_dry(worker& self);
  void discard_all(worker& self);
  void finish_turn(worker& self, runnable& item, after_turn after) noexcept;
  bool housekeeping(worker& self, std::uint64_t turns);
  void rebalance(worker& self, std::int64_t now, std::uint64_t turns);

  // The members that idle_life needs of its pool.
  friend class idle_life<work_stealing, worker>;
  friend class caller_life<work_stealing, worker>;
  // order: relaxed  the notify that follows the store makes a sleeper look; a busy worker sees it
  // soon
  bool ending() const noexcept { return ending_.load(std::memory_order_relaxed); }
  bool inbox_has_some() const noexcept { return !inbox_.empty(); }
  bool anyone_busy() const noexcept;
  std::uint64_t turns_done() const noexcept;
  bool nothing_left(const worker& self) const noexcept;
  void wake(worker* sleeper) noexcept;
  void notify(worker& target) noexcept;
  bool unattended() const noexcept;
  rested rest(worker& self, const std::chrono::nanoseconds* limit, bool inside) noexcept;
  void take_what_came(worker& self);
  void count_as_busy(worker& self);

  // Sources of work. True when the worker's queue got something; the worker is counted as busy
  // then.
  bool take_work(worker& self);
  bool take_gift(worker& self);
  bool take_inbox(worker& self);
  bool await_mail(worker& self);
  bool steal_awake(worker& self, std::int64_t now);
  void take_list(worker& self, runnable* list);
  // Where a worker looks for I/O, if the poller has several shards: a searcher looks into all.
  enum class io_in : std::uint8_t { one_shard, all_shards };
  bool take_io(worker& self, bool busy, io_in part);
  unsigned next_shard(worker& self, unsigned shards) const noexcept;
  bool poll_once_more(worker& self);
  void poll(worker& self);
  void serve(worker& self);
  void leave_door(poller& io) noexcept;
  void put_back(runnable* list) noexcept;
  bool steal_somewhere(worker& self);
  bool steal_by_hint(worker& self, std::int64_t now);
  // Whether a steal takes events that the victim has fetched and not begun.
  enum class events_too : std::uint8_t { no, yes };
  // Whether a searcher asks the owner of a lock before it revokes the lock.
  enum class approach : std::uint8_t { ask, revoke };
  // A victim whose turns are longer than a searcher waits for an answer is not asked.
  static approach approach_to(std::int64_t turn_ns) noexcept {
    return turn_ns < pace::stuck_ns ? approach::ask : approach::revoke;
  }
  static bool enter_as_searcher(worker& victim, approach how) noexcept;
  bool steal_from(worker& self, worker& victim, worker::share most, unsigned at_most,
                  events_too with, approach how);
  bool steal_if_worth(worker& self, worker& victim, std::int64_t now);
  bool take_from_stuck(worker& self, std::int64_t now);
  void hand_on(worker& self) noexcept;
  void call_for(worker& victim, std::int64_t turn_ns) noexcept;

  static bool is_worth_a_call(std::size_t left, std::int64_t turn_ns) noexcept;
  std::uint64_t sum_of(std::atomic<std::uint64_t> worker::*counter) const noexcept;
  void show_busy(worker& self) noexcept;
  void become_idle(worker& self);
  void settle_waits(worker& self) noexcept;

  outstanding_work& alive_;
  runtime_host& runtime_;
  caller_life<work_stealing, worker> caller_;
  std::vector<worker*> workers_;  // from worker's free list
  std::atomic<bool> ending_{false};
  std::atomic<poller*> poller_{nullptr};
  idle_workers<worker> idle_workers_;
  // Each worker reads the members above, and the inbox, after its turns. Members that others write
  // often have lines of their own (tests/layout/lines.cpp).
  alignas(base::line_bytes) inbox<runnable> inbox_;
};

}  // namespace troupe::sched
