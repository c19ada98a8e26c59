// parked: an idle connection of which nothing is kept but its stream and who it is: no task, no
// parser, no buffer, no timer.
//
// A connection that is idle parks at once, unless requests come thick and fast: then it waits for
// the next one with all that it has, and parks when none has come for a second. What comes is told
// of on whichever thread finds it; one task, for as long as there are parked connections, takes
// those that were told of and begins their tasks anew (server_state::wake).
//
// Threads: the links and `why` are the server's mutex's, `next_told` its other mutex's; the rest
// does not change. Invariants
//   K1  a connection is in one of the server's lists, live or parked, from its acceptance to its
//   end: who ends all misses none. K2  one that is in the list of the parked waits, or was told of
//   and not yet taken; it is freed only by who takes it there,
//       so who holds the mutex may end any that is in the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "http/server/server_state.hpp"
#include "io/operations/arrival.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::http {

// What a connection was before it was parked.
struct connection_past {
  bool answered_one = false;
  bool was_parked = false;  // and something has come
  std::uint8_t pace = 0;    // requests that came soon after each other, up to a few
  connection_ending why = connection_ending::none;  // it is to end, but for what has come already
};

struct parked : io::arrival {
  parked(server_state& of, connection_past was, std::int64_t now_ns) noexcept
      : arrival(&on_arrival), server(of), past(was), since_ns(now_ns) {}
  virtual ~parked() = default;
  // In a task: its own begins. It is left empty.
  virtual void revive() = 0;

  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* one, std::size_t bytes) noexcept {
    memory::deallocate(one, bytes);
  }

  server_state& server;
  connection_past past;
  const std::int64_t since_ns;
  parked *older = nullptr, *newer = nullptr;
  parked* next_told = nullptr;

 private:
  static void on_arrival(arrival& self) noexcept {
    static_cast<parked&>(self).server.told_of(static_cast<parked&>(self));
  }
};

}  // namespace troupe::http
