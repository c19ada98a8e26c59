#include "troupe/runtime/parallel_scope.hpp"

#include <chrono>

namespace troupe::tasks {
namespace {

using std::chrono_literals::operator""ms;

// Only this thread's run() can resolve the state: it belongs to a simulated program.
bool needs_run(const shared_state& of) noexcept { return of.main_lane != 0; }

void wait_once(runtime& rt, shared_state& of) {
  if (!needs_run(of)) {
    static_cast<void>(of.wait(std::chrono::nanoseconds::max()));
    return;
  }
  rt.run();
  // out of work, and not resolved: another thread may still have to act
  if (!of.resolved()) static_cast<void>(of.wait(1ms));
}

}  // namespace

std::exception_ptr wait_for_scope(runtime& rt, shared_state& of, std::stop_source& stop) {
  std::exception_ptr why;
  while (!of.resolved()) {
    try {
      why != nullptr && !needs_run(of) ? static_cast<void>(of.wait(std::chrono::hours(1)))
                                       : wait_once(rt, of);
    } catch (...) {
      if (why == nullptr) why = std::current_exception();
      stop.request_stop();
    }
  }
  return why;
}

}  // namespace troupe::tasks
