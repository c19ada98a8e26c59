#include "io/make_reactor.hpp"

#include "troupe/base/error.hpp"

namespace troupe::io {

std::shared_ptr<reactor> make_reactor(sched::poller_seat& seat) {
  if (seat.simulation != nullptr) throw usage_error("troupe: I/O: there is none under the simulated policy; take another one");
  return make_readiness_reactor(system_kernel(), seat.keep_alive);
}

}  // namespace troupe::io
