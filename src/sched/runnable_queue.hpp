// runnable_queue: waiting runnables, oldest first.
#pragma once

#include "base/intrusive_queue.hpp"
#include "sched/runnable.hpp"

namespace troupe::sched {

using runnable_queue = base::intrusive_queue<runnable, &runnable::next>;

}  // namespace troupe::sched
