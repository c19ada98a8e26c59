// simulated: one thread, a seeded choice at every turn, virtual time.
//
// Whole programs run inside step(): the pool, the pinned threads and the main thread are lanes of
// the same loop. The pool's lane gives any of its 256 oldest runnables, the lane of a single thread
// its oldest. The same seed makes the same choices, so a failure can be replayed, as long as no
// outside thread takes part.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "sched/executor.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/poller.hpp"

namespace troupe::sched {

class simulated final : public policy {
 public:
  simulated(std::uint64_t seed, outstanding_work& alive);
  ~simulated() override;

  // How many units of ready awaits a call has until it lets others run (task/async_call.hpp): for
  // some seeds one, so that they run between any two awaits, for others `most`, as on real threads.
  static std::uint8_t ready_units(std::uint64_t seed, std::uint8_t most) noexcept;

  // A lane for a pinned thread, or for the main one. It lives as long as the policy.
  executor& add_lane();

  void submit(runnable& item) noexcept override { submit_to(*lanes_[0], item); }
  void shut_down() override;
  std::vector<counters> count() const override;
  std::size_t queued() const override;  // on all lanes
  unsigned workers() const noexcept override { return 1; }
  void attach(poller& io) override { io_ = &io; }

  bool has_io() const noexcept { return io_ != nullptr; }
  // Hands out what has come by now. False when nothing has, or there is no I/O.
  bool poll_io();
  // When the next event of I/O comes by itself, if one does.
  std::optional<std::int64_t> next_io_ns() {
    return io_ == nullptr ? std::nullopt : io_->next_ns();
  }

  // Waits until that virtual time for what is outside of the simulation, if an operation of I/O
  // does; then virtual time passes as real time does. Returns false if none does.
  bool wait_outside(std::int64_t until_ns);

  // Runs one turn of a runnable that the seed chooses. False when there is none.
  bool step();

  // Sleeps until something is submitted, poke() is called, or `limit` has come.
  void wait_until(std::chrono::steady_clock::time_point limit);
  void poke();

  // What is chosen from one stream of random numbers does not change what another one gives: so a
  // program that asks for one more number, or sends a longer text, is not scheduled otherwise.
  enum class stream : std::uint8_t {
    turns,   // who runs next, and for how long
    time,    // how long things take
    values,  // random numbers that the program asks for
    calls,   // what system calls do; each socket has a stream of its own besides
  };
  // A number below `bound`, chosen by the seed. The simulation's own thread only.
  std::uint64_t choose(std::uint64_t bound, stream from = stream::turns) {
    if (bound < 2 && from == stream::turns) return 0;
    const std::uint64_t chosen = share_of(bound, random_[static_cast<std::size_t>(from)]());
    ++choices_;
    // the steps of FNV-1a
    hash_ = (hash_ ^ (chosen + static_cast<std::uint64_t>(from))) * 1'099'511'628'211u;
    return chosen;
  }
  // A number below `bound` that stays in proportion when the bound changes.
  static std::uint64_t share_of(std::uint64_t bound, std::uint64_t drawn) noexcept {
    return static_cast<std::uint64_t>((static_cast<wide>(drawn) * bound) >> 64);
  }

  // Virtual time: every turn takes up to 2 µs of it.
  // order: relaxed  a time; publishes nothing
  std::int64_t now_ns() const noexcept { return now_ns_.load(std::memory_order_relaxed); }
  // The simulation's own thread.
  void advance_to(std::int64_t ns) noexcept {
    // order: relaxed  as now_ns
    if (ns > now_ns()) now_ns_.store(ns, std::memory_order_relaxed);
  }

 private:
  __extension__ using wide = unsigned __int128;
  struct lane;
  // how many of the pool's runnables a step chooses from: reaching the k-th takes k steps
  static constexpr std::size_t choices_max = 256;
  void submit_to(lane& to, runnable& item) noexcept;
  void put(lane& to, runnable& item) noexcept;
  bool awaited() const;
  void write_choices() const noexcept;
  void tell();

  outstanding_work& alive_;
  const std::uint64_t seed_;
  std::array<std::mt19937_64, 4> random_;  // one for each stream
  std::uint64_t choices_ = 0, hash_ = 14'695'981'039'346'656'037u;
  // Written by the simulation's own thread, read by any.
  std::atomic<std::int64_t> now_ns_{0};
  std::atomic<std::uint64_t> turns_{0};
  mutable std::mutex mutex_;  // outside threads may submit
  std::condition_variable filled_;
  bool poked_ = false;
  poller* io_ = nullptr;
  bool inside_ = false;                       // wait_until() sleeps in the poller
  std::vector<std::unique_ptr<lane>> lanes_;  // lane 0 is the pool
};

}  // namespace troupe::sched
