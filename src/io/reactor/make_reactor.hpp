// make_reactor: chooses and makes the backend of a runtime.
#pragma once

#include <memory>

#include "sched/io_driver_slot.hpp"
#include "sched/runtime_host.hpp"

namespace troupe::io {

class kernel;
class reactor;

// Follows the choice in the slot, as far as the system allows. Throws io_error and std::bad_alloc.
std::shared_ptr<reactor> make_reactor(sched::io_driver_slot& driver);

std::shared_ptr<reactor> make_readiness_reactor(kernel& calls, sched::runtime_host& host,
                                                unsigned shards);
std::shared_ptr<reactor> make_readiness_reactor(std::unique_ptr<kernel> calls,
                                                sched::runtime_host& host);
// For tests: into how many shards the reactors that are made from now on divide their descriptors,
// if they use epoll; 0: as many as the pool asks for.
void set_shards(unsigned number) noexcept;
// For tests: how many buffers may be leased before further reads wait for their turns. The default
// is the number of events of one look. With fewer, the reads of a look would be spread over the
// turns of other coroutines (io/echo_64: 64 cost 2 % less than 16).
inline constexpr unsigned leases_ahead_most = 64;
void set_leases_ahead(unsigned most) noexcept;

// Returns null where the system does not allow io_uring, or this library was built without it;
// `refused` then has the reason.
std::shared_ptr<reactor> make_uring_reactor(kernel& calls, sched::runtime_host& host, int& refused);
// For tests: the sizes of rings that are made from now on; powers of 2. With `leases` 0 there is no
// ring of buffers.
void set_uring_entries(unsigned submissions, unsigned completions, unsigned leases = 256) noexcept;

}  // namespace troupe::io
