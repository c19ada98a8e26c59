#include "troupe/runtime/parallel_scope.hpp"

#include <chrono>

namespace troupe::tasks {
namespace {

using std::chrono_literals::operator""ms;

// Only this thread's run() can resolve the state: it belongs to a simulated program.
bool needs_run(const shared_state& state) noexcept { return state.main_lane != 0; }

void wait_once(runtime& rt, shared_state& state) {
  if (!needs_run(state)) {
    static_cast<void>(state.wait(std::chrono::nanoseconds::max()));
    return;
  }
  rt.run();
  // out of work, and not resolved: another thread may still have to act
  if (!state.resolved()) static_cast<void>(state.wait(1ms));
}

}  // namespace

std::exception_ptr wait_for_scope(runtime& rt, shared_state& state, std::stop_source& stop) {
  std::exception_ptr why;
  while (!state.resolved()) {
    try {
      why != nullptr && !needs_run(state) ? static_cast<void>(state.wait(std::chrono::hours(1)))
                                          : wait_once(rt, state);
    } catch (...) {
      if (why == nullptr) why = std::current_exception();
      stop.request_stop();
    }
  }
  return why;
}

}  // namespace troupe::tasks
