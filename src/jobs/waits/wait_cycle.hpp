// wait_cycle: whether a thread that is about to wait for a job or a fork would wait for itself.
//
// The caller holds the mutex under which threads begin and end to wait, and passes the
// waiting threads. None of them can leave meanwhile: the job or fork that a thread waits for
// therefore exists, and its stack does not change.
#pragma once

#include <string>

#include "jobs/waits/waiting_thread.hpp"

namespace troupe::jobs {

// Finds a cycle through `self`, which is listed as waiting already. Returns the cycle's last
// thread, from which `reached_from` leads back to `self`; or null.
waiting_thread* find_cycle(waiting_thread& self, const waiting_thread_list& waiting) noexcept;

// Names the cycle that ends with `last`: which job needs which, beginning with the job or fork for
// which `first`, one of its threads, waits.
std::string name_cycle(const waiting_thread& last, const waiting_thread& first);

}  // namespace troupe::jobs
