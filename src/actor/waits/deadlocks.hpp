// deadlocks: the search for turns that wait for each other (docs/protocols/deadlocks.md).
//
// A turn that begins to wait for what others do records nothing but the wait itself, which names
// what it is for; and asks for a search, unless one is to come. The search holds each suspended
// turn for an instant, copies what it waits for, and looks for circles. Invariants
//   D1  a wait that a search has come to carries its number (wait::seen_in, and the like of a
//   thread
//       that waits for a job), and a later wait in the same memory does not; the wait of a thread
//       that is blocked for a state has a number of its own, and a later wait has a higher one.
//   D2  a turn is told only by a search that came to each wait of its circle twice, and found it
//   not over the second time. So there
//       was an instant, between the two, at which all of them waited, and none of them ever goes on
//       by itself.
//   D3  a wait is refused by who has detached it from its result, as it is ended by anybody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actor/waits/search_request.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::actor {

class actor_system;
struct activation;
struct wait_snapshot;

// What the layer of jobs tells: it is above this one.
struct job_waits {
  // The thread that runs the job, or null when it is not running. `job` is alive.
  const void* (*runner_of)(const void* job) noexcept;
  // Each thread that waits for a job which another one runs. `seen_in` is of that very wait, and 0
  // when it begins (D1).
  void (*for_each)(void* context, void (*look)(void* context, const void* thread,
                                               const void* runner, std::uint32_t& seen_in));
};

// A wait that is to be refused, and what its turn is told.
struct told_wait {
  const tasks::suspension* wait;
  std::string text;
  // or the wait of a thread that is blocked, by its number (tasks::blocked_thread)
  std::uint64_t blocked = 0;
  tasks::suspension* refused = nullptr;
};

class deadlock_search : private tasks::timer {
 public:
  explicit deadlock_search(actor_system& system) noexcept;
  ~deadlock_search();

  // Any thread: there is a search within 100 ms, or 30 times what the last one took. Behind one
  // that found a circle the next comes within 1 ms, or twice what that took: what goes on now may
  // soon wait for itself again.
  void search_soon() noexcept;
  const std::atomic<bool>& soon() const noexcept { return request_.soon(); }
  // For those who count the timers of users alone.
  const tasks::timer& own_timer() const noexcept { return *this; }
  // The owner of an actor that is about to be parked: whether what it waits for concerns a search.
  static bool concerns(const activation& of) noexcept;
  // Who has parked such an actor, which may be run by another thread already.
  void search_after_park() noexcept;

  // Searches now. How many turns and blocked threads were told: those have mail when this returns.
  // Any thread but one in a turn.
  std::size_t search() noexcept;
  // What is thrown where that wait is awaited.
  std::string take_text(const tasks::suspension& refused);
  // How often its timer has expired.
  // order: relaxed  a statistic
  std::uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }
  // Texts of waits that have been refused, and have not thrown yet.
  std::size_t texts_kept() noexcept;

  const job_waits* jobs = nullptr;  // set before the first turn

 private:
  static constexpr std::int64_t longest_ns = 100'000'000, shortest_ns = 1'000'000,
                                latest_ns = 1'600'000'000;
  static void on_time(timer& self) noexcept;
  void arm(std::int64_t after_ns) noexcept;
  void arm_first() noexcept;
  void arm_anew() noexcept;
  void arm_later(bool was_asked_for) noexcept;
  std::size_t search_locked();
  std::size_t refuse(std::vector<told_wait> told);
  void keep_text(const tasks::suspension& refused, std::string text) noexcept;

  actor_system& system_;
  search_request<> request_;
  std::mutex arming_;
  bool armed_ = false;    // under that, as the next two
  bool is_late_ = false;  // it was armed by arm_later
  std::int64_t later_ns_ = 0;
  std::mutex searching_;  // one at a time
  std::uint32_t number_ = 0;
  // kept, so that a search like the last one allocates nothing
  std::unique_ptr<wait_snapshot> snapshot_;
  std::atomic<std::int64_t> next_after_ns_{longest_ns};
  std::atomic<bool> incomplete_{false};  // the last one could not look at all
  std::atomic<bool> in_flight_{false};   // some turns were, at the last one
  std::atomic<std::uint64_t> rounds_{0};
  std::mutex texts_mutex_;
  std::unordered_map<const tasks::suspension*, std::string> texts_;
};

}  // namespace troupe::actor
