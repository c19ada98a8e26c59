// clock_and_random: the time and the chance of the runtime whose handler is running.
#pragma once

#include <cstdint>

namespace troupe::kit {

// The clock of one object that any thread may use, in nanoseconds. In the handlers and tasks of a
// simulated program it is the program's virtual time, elsewhere the steady clock. A thread outside
// of a simulated program does not know its virtual time: it reads the time of the last use inside.
// An object is therefore best used by one program. Thread: under the lock of the object.
class object_clock {
 public:
  std::int64_t now_ns() noexcept;
  // Whether this thread reads a time that does not pass.
  bool is_frozen() const noexcept;

 private:
  std::int64_t virtual_ns_ = -1;  // of the last use in a simulated program; -1: never
};

// The time of day in seconds since 1970, up to 4 ms late. In a simulated program its virtual time
// (tasks::wall_now_ns). Thread: any. Cost: 10 ns.
std::int64_t wall_now() noexcept;

// Whether the running handler or task belongs to a simulated program.
bool is_simulated() noexcept;

// A random number: in the handlers and tasks of a simulated program chosen by its seed. Thread:
// any. Cost: 3 ns.
std::uint64_t random_number() noexcept;
// The same, between 0 and 1.
double random_part() noexcept;

}  // namespace troupe::kit
