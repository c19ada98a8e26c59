// deadlocks: whether one that is about to wait would wait for itself.
//
// The caller has the mutex under which threads begin and end to wait, and gives the newest of those
// that do. None that does can leave meanwhile: so what it waits for is there, and its stack stays
// as it is.
#pragma once

#include <string>

#include "jobs/lazies/waiting.hpp"

namespace troupe::jobs {

// A circle through this one, which waits already: the last of it, from which `reached_from` leads
// back to `self`; or null.
waiting_thread* find_circle(waiting_thread& self, waiting_thread* newest) noexcept;

// What wants what, from what `first` waits for, a thread of the circle that this is the last of.
std::string name_circle(const waiting_thread& last, const waiting_thread& first);

}  // namespace troupe::jobs
