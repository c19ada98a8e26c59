// running_call: what the task layer needs of the actor whose turn it is
// (src/actor/turn/async_calls.cpp).
#pragma once

#include "troupe/task/async_call.hpp"

namespace troupe::tasks {

// In a turn: sets the call whose coroutines run from now on, or null; returns the one before.
async_call* exchange_running(async_call* call) noexcept;
// The call whose coroutines run on the calling thread; null if none does.
async_call* running_call() noexcept;

}  // namespace troupe::tasks
