#include "troupe/runtime/parallel_scope.hpp"

#include <chrono>

#include "task/running/main_lanes.hpp"

namespace troupe::tasks {
namespace {

using std::chrono_literals::operator""ms;

// Only this thread's run() can resolve the state: all turns of its program run there.
bool needs_run(const shared_state& state) noexcept {
  return main_lanes::belongs_to(state.main_lane, main_lanes::this_thread());
}

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
