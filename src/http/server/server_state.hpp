// server_state: what the connections of a server share: its routes and limits, who they are, and
// the sweep that ends those whose time is over.
//
// Threads: any; the lists and the counts are the mutex's. Connections enter and leave it; they are
// in it for as long as they live or are parked, so that who holds the mutex may end one
// (connection::end), which only asks its operation to end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include "troupe/http/options.hpp"
#include "troupe/http/router.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe {
class stream;
}

namespace troupe::http {

class connection;
struct parked;

// Why a connection is asked to end. `draining` is for those that are idle, or talk by another
// protocol; the others go on.
enum class connection_ending : std::uint8_t { none, parking, late, shed, aborted, draining };

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

// Connections of a server, from which on they read and write in memory that they share: a request
// lies where the last one lay, and one that waits has no buffer. Fewer have buffers of their own,
// which all fit into the processor's caches.
inline constexpr std::size_t sharing_from_default = 256;
std::size_t sharing_from() noexcept;
void set_sharing_from(std::size_t connections) noexcept;  // for tests

struct server_state : std::enable_shared_from_this<server_state> {
  server_state(router table, const server_options& chosen);

  const router routes;
  const server_options options;

  // How many an address has.
  using peer_count = std::pair<const std::string, std::size_t>;

  // One more was accepted, from that address ("" for none), or is no more. False when that has too
  // many: then it does not count for it. `count`: where it does, or null.
  bool admit(const std::string& peer, peer_count*& count);
  void dismiss(peer_count* of) noexcept;
  // It is there to be looked after, or is no more.
  void enter(connection& one);
  void leave(connection& one) noexcept;
  bool is_full() const noexcept;
  // Ends idle connections, the longest first: one in sixteen, one at least. False when there is
  // none.
  bool shed();
  void end_all() noexcept;
  // One that was late can send its answer.
  void revive(connection& one);
  void stop();
  // Ends those that are late, until there are no connections.
  static task<> sweep(std::shared_ptr<server_state> self);

  // Of an idle connection. True: `as` is in its place, which has its stream (`of`), and may have
  // gone already. False: there is something to be read, or it is to end; all is as before.
  bool park(connection& one, parked& as, stream& of);
  // One that was to be parked goes on, unless it is to end: then false.
  bool unpark(connection& one);
  void told_of(parked& one) noexcept;

  std::stop_source stopping;             // no more connections; the present requests are the last
  std::stop_source accepting;            // the same, for who accepts
  event changed;                         // set when a connection has left
  event drained;                         // set while there is none
  std::atomic<std::size_t> buffered{0};  // bytes

  std::size_t count() const;

  // Of a connection that is turned away: whether it may wait until its peer has read why. So may
  // one in sixteen of all places.
  class rejection_linger {
   public:
    explicit rejection_linger(server_state& of) noexcept;
    rejection_linger(const rejection_linger&) = delete;
    ~rejection_linger();
    bool may_linger() const noexcept { return may_linger_; }

   private:
    server_state& of_;
    bool may_linger_ = false;
  };

 private:
  class waker;
  static task<> wake(waker own);
  void end_parked_for_good() noexcept;
  parked* take_told() noexcept;

  // Under the mutex:
  std::int64_t end_late(std::int64_t now_ns) noexcept;
  std::int64_t end_late_parked(std::int64_t now_ns) noexcept;
  void end_parked(connection_ending why) noexcept;
  static void end_parked(parked& one, connection_ending why) noexcept;
  void link(connection& one) noexcept;
  void unlink(connection& one) noexcept;
  void link(parked& one) noexcept;
  void unlink(parked& one) noexcept;

  mutable std::mutex mutex_;
  connection* first_ = nullptr;
  parked *oldest_parked_ = nullptr, *newest_parked_ = nullptr;
  std::atomic<std::size_t> count_{0};
  bool sweeping_ = false;
  bool all_end_ = false;
  bool waking_ = false;  // there is a task for those that are parked
  bool parks_ = true;    // it was not ended before its time
  std::unordered_map<std::string, std::size_t> of_peer_;

  std::mutex told_mutex_;
  parked* first_told_ = nullptr;
  parked** last_told_ = &first_told_;
  event told_;

  std::atomic<std::size_t> turned_away_{0};
};

}  // namespace troupe::http
