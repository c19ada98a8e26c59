#include "io/make_reactor.hpp"

#include "io/simulated_kernel.hpp"

namespace troupe::io {

std::shared_ptr<reactor> make_reactor(sched::poller_seat& seat) {
  if (seat.simulation != nullptr) {
    return make_readiness_reactor(std::make_unique<simulated_kernel>(*seat.simulation), seat.keep_alive);
  }
  return make_readiness_reactor(system_kernel(), seat.keep_alive);
}

}  // namespace troupe::io
