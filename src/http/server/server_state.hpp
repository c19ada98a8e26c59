// server_state: the state that the connections of one server share: routes, limits, the lists of
// connections, and the sweep that ends connections whose time is over.
//
// Threads: any. The mutex guards the lists and the counts. A connection is in a list for as long as
// it lives or is parked: a thread that holds the mutex may end it (end_live). That call
// only cancels the operation that the connection waits for. No thread holds the mutex for more
// connections than one piece of a walk has: a server may have 100,000 of them. A walk over the live
// ones, and after it over the parked ones, misses none that was there when it began: a connection
// enters the live list in front, and enter() then does to it the same as the walk.
// Invariants
//   W1  One task at most wakes parked connections, and none begins once one was ended before its
//       time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/accounts/account.hpp"
#include "base/intrusive_queue.hpp"
#include "base/invariant.hpp"
#include "base/walks/waiters_first.hpp"
#include "base/walks/walked_list.hpp"
#include "http/behind_proxy/reports/counters.hpp"
#include "http/h2/framing/counters.hpp"
#include "http/secure/handshakes.hpp"
#include "http/server/calls/rejection_linger.hpp"
#include "http/server/numbers/event_counts.hpp"
#include "http/server/numbers/request_counts.hpp"
#include "http/server/parked.hpp"
#include "observe/numbers/sharded.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/http/options.hpp"
#include "troupe/http/router.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe {
class stream;
}

namespace troupe::http {

class live_connection;

// From this number of connections in a server on, they read and write in memory that they share: a
// request lies where the last one lay, and a connection that waits has no buffer. With fewer
// connections each has its own buffers, which all fit into the processor's caches.
inline constexpr std::size_t sharing_from_default = 256;
std::size_t sharing_from() noexcept;
void set_sharing_from(std::size_t connections) noexcept;  // for tests

struct server_state final : std::enable_shared_from_this<server_state>, whole_server {
  server_state(router table, const server_options& chosen);

  const router routes;
  const server_options options;
  const std::string strict_transport;  // a line for every answer over TLS; "" for none
  handshakes secure;
  h2::counters http2;
  proxy_header_counters proxied;
  mutable request_counts requests;  // of an observed program
  // Connections that the server has asked to end, by reason; and those that it has not served.
  event_counts<connection_ending, connection_endings> ended;
  observe::sharded_counter accepted, turned_away;
  rejection_lingers lingers;  // of those that are turned away

  // The memory that is kept for all clients, and the share of each.
  base::ledger kept;
  using client_peer = base::ledger::peer;

  // admit: one more connection was accepted, from the client `key` ("" when it has no share).
  // Returns false when this client has too many; then the connection counts for the server only.
  // `counted` is set to the peer for which the connection counts. dismiss: the connection has
  // ended.
  bool admit(const std::string& key, client_peer*& counted);
  // admit_for: a connection that was admitted without a client counts for this one instead. Returns
  // as admit().
  bool admit_for(const std::string& key, client_peer*& counted);
  // A connection counts for another client from now on. Returns false, and changes nothing, when
  // that one has too many.
  bool move_connection(client_peer& from, client_peer& to) noexcept {
    return kept.move_connection(from, to, options.connections_per_peer);
  }
  void dismiss(client_peer* counted) noexcept;
  // The connection keeps the most of the largest client, and the limits are reached.
  void end_over_budget(live_connection& live) noexcept;
  // The connection has given up enough, and may wait again.
  void continue_in_budget(live_connection& live) noexcept;
  // enter: the server watches over the times of `live` from then on. leave: no longer.
  void enter(live_connection& live);
  void leave(live_connection& live) noexcept;
  bool is_full() noexcept override;
  // Ends one sixteenth of the idle connections, at least one, beginning with those that have been
  // idle longest. If none is idle, the largest holder of the largest client ends; if there is none,
  // all connections of trusted proxies whose heads come slowly.
  void shed() override;
  // The same for handshakes that have taken at least a second.
  void shed_handshakes() override;
  // Ends all connections, the awaited operations of their tasks and the calls that they have begun,
  // and shuts their sockets: a call that cannot be cancelled holds up no client. Call it in a turn.
  void end_all() noexcept;
  // Lets a connection that was ended as late send its answer.
  void revive(live_connection& live);
  void stop();
  // As stop(), but idle HTTP/1.1 connections are left until stop() is called.
  void drain(std::chrono::nanoseconds idle_time);
  // How long they are left; 0 after stop().
  std::chrono::nanoseconds idle_time() const;
  // The client of the connection speaks HTTP/2, and gets a notice when the server drains.
  void speaks_h2(live_connection& live);
  // Ends connections that are late, and finishes when there are no connections.
  static task<> sweep(std::shared_ptr<server_state> self);

  // Parks an idle connection. True: `resting`, which holds its stream `over`, took its place in the
  // lists; `resting` may already be freed. False: there is something to read, or the connection is
  // to end; nothing has changed.
  bool park(live_connection& live, parked& resting, stream& over);
  // Lets a connection that was to be parked continue. Returns false when it has been asked to end.
  bool unpark(live_connection& live);
  // Something came for the parked connection, or its wait was ended.
  void report(parked& resting) noexcept;

  std::stop_source stopping;   // no new connections; the current requests are the last
  std::stop_source accepting;  // the same, for the tasks that accept
  std::stop_source hurried;    // stop() was called, perhaps after drain()
  std::stop_source ending;     // the drain time is over: each connection's task ends
  event drained;               // set while there are no connections

  std::size_t count() const;
  std::size_t count_idle() const;

 private:
  class waker;
  // The task that wakes parked connections.
  class waker_stage {
   public:
    bool exists() const noexcept { return stage_ == stage::exists; }
    // It was ended before its time.
    bool is_lost() const noexcept { return stage_ == stage::lost; }
    void begin() noexcept {
      TROUPE_INVARIANT(stage_ == stage::none, "W1");
      stage_ = stage::exists;
    }
    void end() noexcept {
      if (stage_ == stage::exists) stage_ = stage::none;
    }
    void lose() noexcept { stage_ = stage::lost; }

   private:
    enum class stage : std::uint8_t { none, exists, lost };
    stage stage_ = stage::none;
  };
  static task<> wake(waker own);
  void end_parked_for_good() noexcept;
  using parked_queue = base::intrusive_queue<parked, &parked::next_reported>;
  parked_queue take_reported() noexcept;
  bool take_from_list(parked_queue& reported, parked_queue& taken) noexcept;

  std::unique_lock<std::mutex> lock() const { return turns_.enter(mutex_); }
  // One walk through a list; many may be on their way. Each piece holds the mutex.
  template <class List>
  class walk;
  // Without the mutex: these walk.
  template <class List, class Look>
  void for_each(List& list, Look look) const;
  template <class LiveSince, class ParkedSince>
  bool shed_oldest(LiveSince live_since, ParkedSince parked_since);
  void end_parked(connection_ending why) noexcept;

  bool connect(const std::string& key, client_peer*& counted);
  void shed_slow_heads();
  // The caller holds the mutex. end_if_late() returns when the connection may be late, or is to be
  // parked; never_ns when they have asked it to end.
  void end_live(live_connection& live, connection_ending why) noexcept;
  void end_parked(parked& resting, connection_ending why) noexcept;
  std::int64_t end_if_late(live_connection& live, std::int64_t now_ns) noexcept;
  std::int64_t end_if_late(parked& resting, std::int64_t now_ns) noexcept;
  void link(live_connection& live) noexcept;
  void unlink(live_connection& live) noexcept;
  void link(parked& resting) noexcept;
  static base::list_link<live_connection>& link_of(live_connection& live) noexcept;

  mutable std::mutex mutex_;
  mutable base::waiters_first turns_;
  using live_list = base::walked_list<live_connection, &server_state::link_of>;
  mutable live_list live_;
  using parked_list = base::walked_list<parked, &parked::link>;
  mutable parked_list parked_;  // the oldest first
  parked_list::list take_parked() noexcept;
  std::atomic<std::size_t> count_{0};
  bool sweeping_ = false;
  bool all_end_ = false;
  std::chrono::nanoseconds idle_time_{0};  // set by drain(), until stop()
  waker_stage waker_;

  std::mutex reports_mutex_;
  parked_queue reported_;  // the task that wakes has not taken them yet
  event some_reported_;
};

}  // namespace troupe::http
