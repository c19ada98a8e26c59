// thread_times: for which work the threads of an observed runtime spend their time.
//
// It looks at all threads some hundred times a second, at random distances, and shares the time
// since the last look out: the processor time that the thread's clock shows goes to the handler
// that runs, and the whole time counts as blocked if that handler sleeps in the system, or as idle
// if nothing runs. A share is right to a few percent after some seconds, for whatever handlers;
// the processor time of a thread is exact. The threads themselves do nothing for it.
//
// Invariants
//   H1  no sum ever falls.
//   H2  the processor times of a thread's handlers, with `unassigned`, add up to the thread's.
//
// Thread: the observer's; readers hold the lock under which it looks.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string_view>
#include <tuple>
#include <vector>

#include "actor/system/actor_system.hpp"
#include "task/running/running.hpp"

namespace troupe::observing {

struct spent_time {
  std::uint64_t cpu_ns = 0;      // on a processor
  std::uint64_t blocked_ns = 0;  // in a handler that sleeps in a call of the system or at a lock
  spent_time& operator+=(const spent_time& other) noexcept {
    cpu_ns += other.cpu_ns;
    blocked_ns += other.blocked_ns;
    return *this;
  }
};

class thread_times {
 public:
  struct thread_sum : spent_time {
    std::uint64_t idle_ns = 0;        // without work
    std::uint64_t unassigned_ns = 0;  // of cpu_ns: no handler was seen since
  };
  // A handler of a class; or other work, with a class without a name.
  struct part_name {
    unsigned worker;  // 0: other threads
    std::string_view of_class, handler;
    auto operator<=>(const part_name&) const = default;
  };

  explicit thread_times(const actor::actor_system& system) noexcept : system_(system) {}
  thread_times(const thread_times&) = delete;
  thread_times& operator=(const thread_times&) = delete;

  // Looks if that is due. Returns when it is to be called again. Throws std::bad_alloc.
  std::int64_t look(std::int64_t now_ns);

  // By worker; 0: all other threads.
  const std::map<unsigned, thread_sum>& threads() const noexcept { return threads_; }
  const std::map<part_name, spent_time>& parts() const noexcept { return parts_; }

 private:
  struct seen_thread {
    std::int64_t wall_ns, cpu_ns;  // at the last look
    std::uint64_t look;
  };

  void look_at(const tasks::running_work& work, std::int64_t now_ns);
  spent_time& part_of(const tasks::running_work& work);
  std::uint64_t cpu_ns_of_parts(unsigned worker) const;
  std::int64_t next_pause();

  const actor::actor_system& system_;
  std::map<unsigned, thread_sum> threads_;
  std::map<part_name, spent_time> parts_;
  std::map<int, seen_thread> seen_;                               // by the system's number
  std::map<sched::message::handler, std::string_view> class_of_;  // of the last actor seen
  std::vector<tasks::running_work> now_;
  std::minstd_rand random_;
  std::int64_t next_ns_ = 0;
  std::uint64_t looks_ = 0;
  unsigned quiet_looks_ = 0;  // in a row, at which no thread had worked
};

}  // namespace troupe::observing
