// parked: an idle connection of which only the stream and the admission ticket are kept: no task,
// no parser, no buffer, no timer.
//
// An idle connection parks at once, unless requests come fast, one after the other. Then it keeps
// its task and its buffers while it waits for the next request, and parks when none has arrived for
// a second. The reactor reports bytes for a parked connection on whichever thread finds them. One
// task exists for as long as there are parked connections: it takes those that were reported and
// starts a new task for each of them (server_state::wake).
//
// Threads: the server's mutex guards `link` and `past.why`, its `reports_mutex_` guards
// `next_reported`; the other members do not change.
// Invariants
//   K1  a connection is in one of the server's lists, live or parked, from its acceptance to its
//       end: a walk over both lists that ends all connections misses none.
//   K2  a connection in the parked list waits, or was reported and not yet taken. Only the task
//       that takes it from there frees it: a thread that holds the mutex may end any connection in
//       the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "http/server/calls/requested_end.hpp"
#include "io/suspensions/arrival.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::http {

struct server_state;

// The history of a connection, which is kept while it is parked.
struct connection_past {
  bool answered_one = false;
  bool was_parked = false;  // it was parked, and bytes have arrived since
  std::uint8_t pace = 0;    // counts requests that came soon after the one before, up to a few
  // why it is to end, once the bytes that are here are answered
  connection_ending why = connection_ending::none;
};

struct parked : io::arrival {
  parked(server_state& owner, connection_past was, std::int64_t now_ns) noexcept
      : arrival(&on_arrival), server(owner), past(was), since_ns(now_ns) {}
  virtual ~parked() = default;
  // Call it in a task. Starts the connection's own task and leaves this object empty.
  virtual void revive() = 0;

  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* storage, std::size_t bytes) noexcept {
    memory::deallocate(storage, bytes);
  }

  server_state& server;
  connection_past past;
  const std::int64_t since_ns;
  bool says_end = false;  // the client is notified when the connection ends: it is revived for that
  base::list_link<parked> link;
  parked* next_reported = nullptr;

 private:
  static void on_arrival(arrival& self) noexcept;
};

}  // namespace troupe::http
