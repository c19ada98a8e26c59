// submitted: the parts of a submitted call's run that do not depend on types. For the library's own
// use.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <coroutine>
#include <exception>
#include <utility>

#include "troupe/context/context.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe::submissions {

// Runs the task on the pool of `rt`, or of the runtime of the running handler if `rt` is null.
void start(runtime* rt, task<> run);

// Reports a failure of the actor whose turn this is, or of the submission itself. The context lives
// until run() has thrown the failure, and until the next one that run() throws; otherwise it ends
// at once. The caller must hold no other reference to the exception. `describes` names the failed
// call; null: a submitted call.
void report(std::exception_ptr failure, owned_context memory,
            sched::message::handler describes = nullptr) noexcept;

// A cancelled call has failed: throws cancelled, which refers to no context, and reports any other
// exception.
[[noreturn]] void end_cancelled(std::exception_ptr failure, owned_context memory);

// Calls `run` in a turn of the actor. The future becomes true when that was done, false if the
// actor had stopped. The caller holds the actor. Throws std::bad_alloc.
future<bool> run_in_turn(void* actor, void* argument, void (*run)(void* argument) noexcept);

using tasks::being_cancelled;

// A reference to the actor whose turn this is, if any.
class actor_hold {
 public:
  actor_hold() noexcept;
  actor_hold(actor_hold&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  actor_hold& operator=(actor_hold&&) = delete;
  ~actor_hold();
  void* get() const noexcept { return held_; }

 private:
  void* held_;
};

}  // namespace troupe::submissions
