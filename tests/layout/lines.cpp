// Words that one thread writes often lie in other cache lines than words that every turn or every
// operation of I/O reads: else each write takes the line away from all readers, which two
// processors do not show and sixteen do. Compiled without access control.
#include <cstddef>
#include <cstdio>

#include "actor/system/actor_system.hpp"
#include "io/reactor/reactor.hpp"
#include "log/writer.hpp"
#include "sched/stealing/work_stealing.hpp"
#include "task/timers/timers.hpp"
#include "task/traces/spans.hpp"

namespace {

using namespace troupe;

constexpr std::size_t line = 64;

struct pair {
  const char* names;
  std::size_t read, written;
};
#define PAIR(type, read, written) \
  { #type ": " #read ", " #written, offsetof(type, read), offsetof(type, written) }

constexpr pair pairs[] = {
    PAIR(sched::work_stealing, ending_, inbox_),
    PAIR(sched::work_stealing, poller_, inbox_),
    PAIR(sched::work_stealing, workers_, inbox_),
    PAIR(sched::idle_workers<sched::worker>, lonely_, awake_),
    PAIR(sched::idle_workers<sched::worker>, lonely_, sleepers_),
    PAIR(io::reactor, calls, door),
    PAIR(io::reactor, calls, waiting),
    PAIR(io::reactor, calls, slots_mutex_),
    PAIR(io::reactor, waiting, slots_mutex_),
    PAIR(io::reactor, waiting, shards_),
    PAIR(actor::actor_system, counts, sleepers),
    PAIR(actor::actor_system, counts, entrance),
    PAIR(actor::actor_system, executors, entrance),
    PAIR(actor::actor_system, dead_letters, entrance),
    PAIR(actor::actor_system, entrance, sleepers),
    PAIR(tasks::timers, number_, wakes_),
    PAIR(tasks::span_list, parent_based_, records_.granted_),
    PAIR(log::writer, form_, buffer_mutex_),
};
static_assert(alignof(sched::work_stealing) >= line && alignof(io::reactor) >= line &&
              alignof(actor::actor_system) >= line);
static_assert(alignof(tasks::guarded_wheel) >= line);
static_assert(alignof(io::slot) >= line && sizeof(io::slot) == line);
static_assert(sizeof(io::reactor::shard) % line == 0);

}  // namespace

int main() {
  int shared = 0;
  for (const pair& one : pairs) {
    if (one.read / line != one.written / line) continue;
    std::printf("layout: one line has both of %s\n", one.names);
    ++shared;
  }
  return shared == 0 ? 0 : 1;
}
