// simulated: one thread, a seeded choice at every turn, virtual time.
//
// Whole programs run inside step(): the pool, the pinned threads and the main thread are lanes of
// the same loop. The pool's lane gives any of its 256 oldest runnables, the lane of a single thread
// its oldest. The same seed makes the same choices, which lets a failure be replayed, as long as no
// outside thread takes part.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sched/executor.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/policies/choices.hpp"
#include "sched/poller.hpp"

namespace troupe::sched {

class simulated final : public policy {
 public:
  simulated(std::uint64_t seed, outstanding_work& alive, std::unique_ptr<choice_source> source);
  ~simulated() override;

  // A lane for a pinned thread, or for the main one. It lives as long as the policy.
  executor& add_lane();

  void submit(runnable& item) noexcept override { submit_to(*lanes_[0], item); }
  void shut_down() override;
  std::vector<counters> count() const override;
  std::size_t queued() const override;  // on all lanes
  unsigned workers() const noexcept override { return 1; }
  void attach(poller& io) override { io_ = &io; }

  bool has_io() const noexcept { return io_ != nullptr; }
  // Hands out the events that have arrived. False when there are none, or there is no I/O.
  bool poll_io();
  // When the next event of I/O comes by itself, if one does.
  std::optional<std::int64_t> next_io_ns() {
    return io_ == nullptr ? std::nullopt : io_->next_ns();
  }

  // Waits until that virtual time for events outside of the simulation, if an operation of I/O
  // does; then virtual time passes as real time does. Returns false if none does.
  bool wait_outside(std::int64_t until_ns);

  // Runs one turn of a runnable that the source chooses. False when there is none, or when the
  // source lets time pass.
  bool step();

  // Sleeps until something is submitted, poke() is called, or until `limit`.
  void wait_until(std::chrono::steady_clock::time_point limit);
  void poke();

  // An answer below `bound` (policies/choices.hpp). The simulation's own thread only.
  std::uint64_t choose(choice_kind kind, std::uint64_t bound,
                       connection_choices* choices = nullptr) {
    return decide({kind, bound, running_, choices, nullptr});
  }
  // `subject`: the connection of a send, or the storage.
  fault fault_at(fault_point where, const lineage* subject = nullptr) {
    return source_->fault_at(where, subject);
  }
  // The fault of a call of a storage, which it names at its first call of a search.
  fault storage_fault(fault_point where, lineage* storage);
  // Names a connection that the running turn makes.
  void begin(connection_choices& choices);

  // The program is out of work. Throws the source's exceptions.
  void out_of_work(std::uint64_t dead_letters) { source_->out_of_work(dead_letters); }

  // Virtual time: every turn takes up to 2 µs of it.
  // order: relaxed  a time; publishes nothing
  std::int64_t now_ns() const noexcept { return now_ns_.load(std::memory_order_relaxed); }
  // The simulation's own thread.
  void advance_to(std::int64_t ns) noexcept {
    // order: relaxed  as now_ns
    if (ns > now_ns()) now_ns_.store(ns, std::memory_order_relaxed);
  }

 private:
  struct lane;
  // how many of the pool's runnables a step chooses from: reaching the k-th takes k steps
  static constexpr std::size_t choices_max = 256;
  void submit_to(lane& to, runnable& item) noexcept;
  void put(lane& to, runnable& item) noexcept;
  bool awaited() const;
  std::uint64_t decide(const choice_point& at);
  struct ready;
  void begin_turn(const runnable& item) noexcept;
  runnable_names::named end_turn(runnable& item) noexcept;
  // Under the mutex.
  bool in_turn() const noexcept { return std::this_thread::get_id() == runs_on_; }
  void write_choices() const noexcept;
  void tell();

  outstanding_work& alive_;
  const std::uint64_t seed_;
  const std::unique_ptr<choice_source> source_;
  std::uint64_t choices_ = 0, hash_ = 14'695'981'039'346'656'037u;
  runnable_names names_{source_->root()};  // under the mutex
  choice_name running_ = program_name;     // the runnable whose turn it is
  std::thread::id runs_on_{};              // the thread of the turn; written under the mutex
  // Written by the simulation's own thread, read by any.
  std::atomic<std::int64_t> now_ns_{0};
  std::atomic<std::uint64_t> turns_{0};
  mutable std::mutex mutex_;  // outside threads may submit
  std::condition_variable filled_;
  bool poked_ = false;
  poller* io_ = nullptr;
  unshared_events fetched_;
  bool inside_ = false;                       // wait_until() sleeps in the poller
  std::vector<std::unique_ptr<lane>> lanes_;  // lane 0 is the pool
};

}  // namespace troupe::sched
