#include "durable/memory/wall_clock.hpp"

#include "kit/clock_and_random.hpp"
#include "task/running/running.hpp"

namespace troupe::durable::parts {

void wall_clock::open() noexcept { simulated_ = kit::is_simulated(); }

due_time wall_clock::now() const {
  using std::chrono::milliseconds;
  if (!simulated_) return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  return due_time(std::chrono::seconds(tasks::simulated_start_s)) +
         std::chrono::floor<milliseconds>(on_.now());
}

}  // namespace troupe::durable::parts
