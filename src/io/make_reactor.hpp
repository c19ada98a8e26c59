// make_reactor: which backend a runtime gets.
#pragma once

#include <memory>

#include "io/reactor.hpp"

namespace troupe::io {

// By the seat's choice, and what the system allows. Throws io_error, std::bad_alloc.
std::shared_ptr<reactor> make_reactor(sched::poller_seat& seat);

std::shared_ptr<reactor> make_readiness_reactor(kernel& calls, std::function<void(bool)> keep_alive);
std::shared_ptr<reactor> make_readiness_reactor(std::unique_ptr<kernel> calls, std::function<void(bool)> keep_alive);

}  // namespace troupe::io
