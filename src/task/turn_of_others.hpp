// turn_of_others: the suspension of a coroutine that has awaited so many ready things in a row that
// others must run first (docs/protocols/ready_awaits.md). Internal to the library.
#pragma once

#include "troupe/sched/message.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::tasks {

// It lies in the block pool, and frees itself. The awaited object is ready, and has no place for a
// suspension.
class turn_of_others final : public suspension {
 public:
  // starts: the coroutine begins after it; if its call is cancelled meanwhile, it never does, and
  // ends. Throws std::bad_alloc.
  static turn_of_others& make(bool starts);

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  explicit turn_of_others(bool starts) noexcept : suspension(&act_on), starts_(starts) {}
  void end_turn() noexcept;
  void free() noexcept;
  static const char* resume_after(suspension& base) noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
  const bool starts_;
};

}  // namespace troupe::tasks
