// What CAF's benchmarks share: the types of their messages, and how the main thread waits for a
// result. Written for CAF 0.17, the version in Debian 12.
#pragma once

#include <cstddef>
#include <cstdint>

#include <caf/all.hpp>

#include "../../measure.hpp"

namespace caf_bench {

using measure::result;
using measure::stopwatch;
using std::uint64_t;

using start_atom = caf::atom_constant<caf::atom("start")>;
using count_atom = caf::atom_constant<caf::atom("count")>;
using report_atom = caf::atom_constant<caf::atom("report")>;
using done_atom = caf::atom_constant<caf::atom("done")>;

// Starts a system with so many workers, which steal from each other (CAF's default; its other
// policy, sharing, is not faster in any row, and half as fast in ping_pong). The system is never
// destroyed: its end would wait for actors that refer to each other, as those of a ring do, and
// the bench does not time it.
//
// An actor handles up to 20 messages in a turn. CAF's default has no bound: then a sender never
// yields to its receivers, waiting messages and actors pile up in memory, fork_join_throughput
// takes twice as long, and fork_join_create on two workers takes ten minutes instead of two
// seconds.
inline caf::actor_system& start_system(unsigned workers) {
  auto* config = new caf::actor_system_config;
  config->set("scheduler.max-threads", workers);
  config->set("scheduler.max-throughput", std::size_t{20});
  return *new caf::actor_system(*config);
}

// Waits for `reports` messages (done_atom, number), and returns the sum of the numbers.
inline uint64_t receive_sum(caf::scoped_actor& self, std::size_t reports) {
  uint64_t sum = 0;
  for (std::size_t i = 0; i < reports; ++i) {
    self->receive([&](done_atom, uint64_t number) { sum += number; });
  }
  return sum;
}

// How many messages or spawns a sender makes before it sends itself a message and returns.
constexpr uint64_t slice_max = 64;

}  // namespace caf_bench
