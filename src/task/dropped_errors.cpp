#include "task/dropped_errors.hpp"

#include <atomic>
#include <utility>

#include "task/running/running.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/result.hpp"

namespace troupe::tasks {
namespace {

constinit std::atomic<dropped_observer> outside{nullptr};

// Whether an exception only means that the work was ended from outside: no code has failed.
bool says_that_it_was_ended(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
    return true;
  } catch (const actor_stopped&) {
    return true;
  } catch (const broken_promise&) {
    return true;
  } catch (...) {
    return false;
  }
}

// The runtime whose work the calling thread runs, and which therefore lives; else null.
const runtime_state* runtime_here() noexcept {
  const running_state& state = running_here();
  // order: relaxed (all)  the thread's own
  if (const void* actor = state.actor.load(std::memory_order_relaxed))
    return &runtime_state::of(actor);
  const bool runs = state.worker != 0 || state.in_procedure.load(std::memory_order_relaxed);
  return runs ? state.runtime.load(std::memory_order_relaxed) : nullptr;
}

}  // namespace

// order: relaxed  the function does not change, and refers to nothing
void observe_dropped_outside(dropped_observer observer) noexcept {
  outside.store(observer, std::memory_order_relaxed);
}

void report_dropped(std::exception_ptr failure) noexcept {
  if (says_that_it_was_ended(failure)) return;
  if (const runtime_state* const runtime = runtime_here())
    return runtime->runtime.report_dropped(failure);
  // order: relaxed  as above
  if (const dropped_observer observer = outside.load(std::memory_order_relaxed)) observer(failure);
}

}  // namespace troupe::tasks
