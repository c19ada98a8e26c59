// posted: a naked procedure as a runnable.
#pragma once

#include "actor/actor_system.hpp"
#include "sched/runnable.hpp"

#include "troupe/base/unique_function.hpp"

namespace troupe {

// Called by post(). The scheduler frees the runnable once it has run. Throws std::bad_alloc.
sched::runnable& make_posted(actor::actor_system& home, unique_function<void()> procedure);

}  // namespace troupe
