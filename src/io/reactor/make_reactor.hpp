// make_reactor: which backend a runtime gets.
#pragma once

#include <memory>

#include "io/reactor/reactor.hpp"

namespace troupe::io {

// By the slot's choice, and what the system allows. Throws io_error, std::bad_alloc.
std::shared_ptr<reactor> make_reactor(sched::io_driver_slot& driver);

std::shared_ptr<reactor> make_readiness_reactor(kernel& calls, runtime_services of);
std::shared_ptr<reactor> make_readiness_reactor(std::unique_ptr<kernel> calls, runtime_services of);
// For tests: how many buffers may be leased before reads of more wait for their turns. As many as a
// look has events: with fewer, the reads of a look stand between the turns of others (io/echo_64:
// 64 cost 2 % less than 16).
inline constexpr unsigned leases_ahead_most = 64;
void set_leases_ahead(unsigned most) noexcept;

// Null where the system does not allow it, or this library was built without it; `refused` says why
// then.
std::shared_ptr<reactor> make_uring_reactor(kernel& calls, runtime_services of, int& refused);
// For tests: the sizes of the rings that are made from now on. Powers of 2; without leases there is
// no ring of buffers.
void set_uring_entries(unsigned submissions, unsigned completions, unsigned leases = 256) noexcept;

}  // namespace troupe::io
