#include "log/records.hpp"

namespace troupe::log {

constinit record_list kept_lines;

bool record_list::open(std::size_t most, std::size_t batch) noexcept {
  // order: acquire  the exporter before has left; pairs with close/release
  if (is_open_.exchange(true, std::memory_order_acquire)) return false;
  forget(free_all(take_all()));  // lines of threads that saw the end of the last one late
  limit(most, batch);
  // order: relaxed  a thread may see it a little late
  is_kept_.store(true, std::memory_order_relaxed);
  return true;
}

void record_list::close() noexcept {
  // order: relaxed  as above
  is_kept_.store(false, std::memory_order_relaxed);
  forget(free_all(take_all()));
  // order: release  pairs with open/acquire
  is_open_.store(false, std::memory_order_release);
}

}  // namespace troupe::log
