// handler_watch: notes for an execution which handler of an actor ran directly after which other
// handler, for the coverage of a search (searching/coverage.hpp); and the sum of all messages that
// wait and of the lines of all suspended handlers, for suspected livelocks (livelock.hpp).
// Thread: the simulation's own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "observe/ring.hpp"
#include "sched/exploring/schedule.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched::exploring {

// While it exists, it gets each event of the thread that made it. A listener that is made later
// must pass on its events (story_listener.hpp).
class handler_watch : private observe::listener {
 public:
  explicit handler_watch(execution& watched);
  handler_watch(const handler_watch&) = delete;
  handler_watch& operator=(const handler_watch&) = delete;
  ~handler_watch();

 private:
  static void hear(listener& self, observe::event kind, const char* text,
                   std::uint64_t id) noexcept;
  static void hear_wait(listener& self, std::uint64_t actor, const char* event, const char* method,
                        const char* file, std::uint32_t line) noexcept;
  void send(const char* handler, std::uint64_t actor);
  void begin(const char* handler, std::uint64_t actor);
  void take(const char* handler, std::uint64_t actor);
  void order(const char* handler, std::uint64_t actor);

  execution& execution_;
  const bool watched_before_;
  // A handler is compared by the address of its name.
  std::unordered_map<std::uint64_t, const char*> last_;  // of each actor
  std::set<std::pair<const char*, const char*>> known_;
  std::map<std::pair<std::uint64_t, const char*>, unsigned> sent_;      // and not handled yet
  std::unordered_map<std::uint64_t, std::deque<std::uint64_t>> waits_;  // of each actor
};

}  // namespace troupe::sched::exploring
