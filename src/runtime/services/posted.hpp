// posted: a naked procedure as a runnable.
#pragma once

#include <exception>

#include "actor/system/actor_system.hpp"
#include "observe/counting/sampled_sends.hpp"
#include "sched/runnable.hpp"
#include "task/running/running.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe {

// Called by post(). The scheduler frees the runnable once it has run. Throws std::bad_alloc.
sched::runnable& make_posted(actor::actor_system& home, unique_function<void()> procedure);

// Runs `procedure` as a posted one, unless a stop discards.
template <class Procedure>
void run_posted(actor::actor_system& home, Procedure&& procedure) {
  if (!home.discarding()) {
    const tasks::inside_procedure entered(home);
    const observe::sampled_procedure sample;
    observe::trace(observe::event::post_begin, nullptr);
    try {
      procedure();
    } catch (...) {
      home.report(nullptr, nullptr, std::current_exception());
    }
  }
  if (!home.discarding()) observe::trace(observe::event::post_end, nullptr);
}

// Of a runnable that runs once.
bool never_deactivate(sched::runnable& item);
bool never_pending(const sched::runnable& item);

}  // namespace troupe
