// posted: a naked procedure as a runnable.
#pragma once

#include <functional>

#include "actor/actor_system.hpp"
#include "sched/runnable.hpp"

namespace troupe {

// Called by post(). The scheduler frees the runnable once it has run. Throws std::bad_alloc.
sched::runnable& make_posted(actor::actor_system& home, std::move_only_function<void()> procedure);

}  // namespace troupe
