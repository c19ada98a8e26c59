// running_flow: what the task layer asks of the actor whose turn it is (src/actor/flows.cpp).
#pragma once

#include "troupe/task/flow.hpp"

namespace troupe::tasks {

// In a turn: the call whose coroutines run from now on, or null; gives the one before.
flow* exchange_running(flow* call) noexcept;

}  // namespace troupe::tasks
