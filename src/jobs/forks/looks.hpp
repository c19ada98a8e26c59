// looks: how often forks and loops that are divided look at the clock.
#pragma once

#include <cstdint>

namespace troupe::jobs {

// The span between two looks should lie between these. Looks are counted, in forks and parts or in
// loops and rounds, so that the clock is read seldom.
inline constexpr std::int64_t look_ns_min = 10'000, look_ns_max = 40'000;

}  // namespace troupe::jobs
