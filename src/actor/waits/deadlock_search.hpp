// deadlock_search: the search for turns that wait for each other (docs/protocols/deadlocks.md).
//
// A turn that begins to wait for another turn's work records nothing but the wait itself, which
// names its target; then the turn asks for a search, unless one is due already. The search holds
// each suspended turn for an instant, copies the target of its wait, and looks for cycles.
// Invariants
//   D1  a wait that a search has seen carries that search's number (suspension::seen_in, and the
//       like for a thread that waits for a job); a later wait in the same memory does not. The wait
//       of a thread that is blocked for a state has a number of its own, and each later wait has a
//       higher one.
//   D2  a turn is refused only by a search that saw each wait of its cycle twice, and found it not
//       over the second time. Between the two looks there was thus an instant at which all of them
//       waited, and none of them can end by itself.
//   D3  the thread that refuses a wait has detached it from its result first, as has every thread
//       that ends a wait.
//   D4  the timer is armed only while it is off, and each round is of a timer that was armed.
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
#include "actor/waits/search_thread.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::actor {

class actor_system;
struct wait_snapshot;

// A wait that will be refused, and the text that its turn gets.
struct refused_wait {
  const tasks::suspension* wait;
  std::string text;
  // else the wait of a blocked thread, by its number (tasks::blocked_thread)
  std::uint64_t blocked = 0;
  tasks::suspension* refused = nullptr;
};

class deadlock_search : private tasks::timer {
 public:
  explicit deadlock_search(actor_system& system) noexcept;
  ~deadlock_search();

  // Any thread: makes a search start within 100 ms, or within 30 times the duration of the last
  // search if that is longer. After a search that found a cycle the next one starts within 1 ms,
  // or within twice that search's duration: the turns that continue often wait for each other again
  // soon.
  void search_soon() noexcept;
  const std::atomic<bool>& soon() const noexcept { return request_.soon(); }
  // At the runtime's end, when no thread passes the gate any longer: ends the thread that searches.
  void shut_down() noexcept { thread_.shut_down(); }
  // For code that counts only the users' timers.
  const tasks::timer& own_timer() const noexcept { return *this; }
  // By the thread that has parked an actor whose wait a search must know (waits_for_others).
  // Another thread may be running the actor already.
  void search_after_park() noexcept;

  // Searches now. Returns how many turns and blocked threads were refused; their refusals have been
  // delivered when this returns. Any thread that is not in a turn.
  std::size_t search() noexcept;
  // The text of the exception that the refused wait throws.
  std::string take_text(const tasks::suspension& refused);
  // How often its timer has expired.
  // order: relaxed  a statistic
  std::uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }
  // How many texts wait for a refused turn that has not thrown yet.
  std::size_t texts_kept() noexcept;

 private:
  static constexpr std::int64_t longest_ns = 100'000'000, shortest_ns = 1'000'000,
                                latest_ns = 1'600'000'000;
  // Of the timer. `late`: arm_later armed it.
  enum class alarm : std::uint8_t { off, on, late };
  static void on_time(timer& self) noexcept;
  void make_round() noexcept;
  bool arm(std::int64_t after_ns) noexcept;
  void arm_first() noexcept;
  void arm_anew() noexcept;
  void arm_later(bool was_asked_for) noexcept;
  std::size_t search_locked();
  std::size_t refuse(std::vector<refused_wait> chosen);
  void keep_text(const tasks::suspension& refused, std::string text) noexcept;

  actor_system& system_;
  search_request<> request_;
  std::mutex arming_;
  alarm alarm_ = alarm::off;  // guarded by arming_, as is the next one
  std::int64_t later_ns_ = 0;
  std::mutex searching_;  // one search at a time
  std::uint32_t number_ = 0;
  // kept, so that a search no larger than the last one allocates nothing
  std::unique_ptr<wait_snapshot> snapshot_;
  std::atomic<std::int64_t> next_after_ns_{longest_ns};
  std::atomic<bool> incomplete_{false};  // the last search could not look at everything
  std::atomic<bool> in_flight_{false};   // turns were in flight during the last search
  std::atomic<std::uint64_t> rounds_{0};
  std::mutex texts_mutex_;
  std::unordered_map<const tasks::suspension*, std::string> texts_;
  search_thread thread_;
};

}  // namespace troupe::actor
