// observed_runtime: a runtime with the looks and numbers that the observer keeps of it.
#pragma once

#include "observe/numbers/tables.hpp"
#include "runtime/core/runtime_core.hpp"
#include "runtime/observing/numbers/history_watch.hpp"
#include "runtime/observing/times/thread_times.hpp"
#include "runtime/observing/warning_watch.hpp"

namespace troupe::observing {

// Thread: the observer's; readers hold the lock under which it looks.
struct observed_runtime {
  using collector = void (*)(observed_runtime& observed, observe::number_tables& all);

  // `collects` adds all numbers of the moment for the history. It may throw std::bad_alloc.
  observed_runtime(runtime_core& observed, collector collects)
      : core(observed),
        watch(observed),
        times(*observed.system),
        history([this, collects](auto& all) { collects(*this, all); }) {}
  observed_runtime(const observed_runtime&) = delete;
  observed_runtime& operator=(const observed_runtime&) = delete;

  runtime_core& core;
  warning_watch watch;
  thread_times times;
  history_watch history;
};

}  // namespace troupe::observing
