// stream_connection: a connection of HTTP/2 to an origin, which requests share.
//
// A task of its own, the driver, reads and writes as long as there are requests. Then it parks the
// connection in wire_pool, where it waits without a task, as other kept connections do. The driver
// makes a connection of a kept one again.
// Invariants
//   S2  the wire belongs to the driver, from start() until retire().
//   S3  `places_` counts the places that are reserved and the streams that the session has; a
//       connection is parked only when it has none.
// Rejected: to let a caller that waits read for all others. It may be cancelled in the middle of a
// write, which holds frames of others.
//
// Threads: any, but where the driver is named. The session and the streams are used under the
// mutex. Order of mutexes: the pool's, then this one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "http/client/client_resources.hpp"
#include "http/client/kept_answer.hpp"
#include "http/client/streams/stream_stages.hpp"
#include "http/client/wires/client_wire.hpp"
#include "http/h2/framing/client_session.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/scope.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

class stream_connection;

enum class stream_failure : std::uint8_t {
  none,
  refused,    // the server has done nothing of it, and has refused it
  moved,      // the server has done nothing of it, since the connection takes no more requests
  reset,      // by the server
  malformed,  // the answer breaks the rules
  lost,       // the connection has ended
  stalled,    // the server took nothing for too long
  excess,     // the server went beyond a limit, or broke the rules of the connection
  kept,       // too much was kept of it
};

// One request and its answer on a connection. Its members are used under the connection's mutex.
struct asked_stream {
  explicit asked_stream(kept_holder& holder) noexcept : kept(&holder) {}

  std::int32_t number = 0;

  std::optional<h2::head_block> head, trailer;  // of the answer
  std::string unread;                           // of its body
  int interim = 0;
  asked_stage stage;
  stream_failure failed = stream_failure::none;
  std::string why;  // it failed

  std::string owned;        // a small body
  std::string_view unsent;  // of the request's body
  std::uint64_t taken = 0;  // bytes of it that the session has taken
  bool is_last = false;     // no more of it follows

  kept_answer kept;       // `unread` and the heads
  bool is_freed = false;  // too much was kept of it
  bool is_listed = false;
  base::list_link<asked_stream> link;  // of those whose answer the program may still read

  event news;  // something has changed for the one that waits
  event sent;  // the session has taken all bytes, or takes no more; for a WebSocket's sender
};
using stream_ptr = std::shared_ptr<asked_stream>;

// The owner of the connections, as they use it. Threads: any.
class stream_owner {
 public:
  // A place of a connection to that origin has become free.
  virtual void freed(const std::string& origin) = 0;
  // The driver has ended. Parks the connection if that is possible. Returns false if it is to go
  // on.
  virtual bool retire(stream_connection& connection) = 0;

 protected:
  ~stream_owner() = default;
};

class stream_connection final : public std::enable_shared_from_this<stream_connection>,
                                private h2::client_session_events,
                                private kept_holder {
 public:
  // A place is reserved for the caller.
  stream_connection(client_resources& core, stream_owner& owner, wire_ptr wire);
  ~stream_connection();

  // Takes the bytes that arrived while the connection was parked. Returns false if it is of no use
  // any more. Call it before start().
  task<bool> catch_up(tasks::limits within);
  // Begins the driver, which keeps `core` and the owner alive by `client`. Call it in a task.
  void start(std::shared_ptr<client_resources> client);

  // Reserves a place for a request. Returns false if there is none.
  bool reserve();
  void give_back_place();
  // Notifies the owner that a place is free. Call it without the mutex.
  void tell_freed() { owner_.freed(origin_); }
  // The server's limit of streams; nullopt if the server has announced none.
  std::optional<std::size_t> streams_max();
  // False while the server may still announce its limit.
  bool has_said_max();
  // Whether the server allows a CONNECT that names a protocol; nullopt until its settings arrive,
  // which sets the event.
  std::optional<bool> allows_connect();
  const event& settings_came() const noexcept { return settings_came_; }
  // The caller's assumption, until the server states its limit.
  void expect(std::size_t streams);
  // Asks, at the caller's place. `exchange` is closed and refused if the connection takes no
  // request any more.
  void open(asked_stream& exchange, const stream_ptr& owned, const h2::header_lines& lines,
            bool has_body);
  // Passes on the next part of the body, which must stay valid until `taken` counts it.
  void send(asked_stream& on, std::string_view bytes, bool is_last);
  // The body ends, and these fields follow it.
  void end_body(asked_stream& on, const h2::header_lines& trailer);
  // Ends the answer if too much is kept, and it was asked to end. Under the mutex.
  void end_if_asked(asked_stream& exchange);
  // Ends it for that reason. Under the mutex.
  void end_kept(asked_stream& exchange) noexcept;
  // Takes the arrived part of the body; gives the server a window for as much.
  void take_body(asked_stream& exchange, std::string& body);
  // The caller needs no more of it.
  void drop(asked_stream& exchange);
  // Its answer has no reader any more.
  void forget(asked_stream& exchange) noexcept;
  // A request that was sent then has waited without an answer. If nothing at all has arrived since,
  // the server may be gone, and the connection gets no more requests.
  void doubt(std::chrono::nanoseconds asked_at);

  // An empty stream, whose answer this connection ends if too much is kept.
  stream_ptr new_stream() {
    kept_holder& holder = *this;
    return std::make_shared<asked_stream>(holder);
  }

  std::mutex& mutex() noexcept { return mutex_; }
  const std::string& origin() const noexcept { return origin_; }

  // For stream_pool, under its mutex: takes the wire of a connection that has no place in use.
  // Returns false if the driver is to go on. `is_good`: whether the wire can be kept.
  bool retire(wire_ptr& wire, bool& is_good);

 private:
  void on_asked(std::int32_t stream) override;
  void on_head(std::int32_t stream, h2::head_block&& head, bool ends) override;
  void on_body(std::int32_t stream, std::string_view piece) override;
  void on_end(std::int32_t stream, h2::head_block&& trailer) override;
  void on_closed(std::int32_t stream, h2::stream_end how, std::uint32_t why) override;
  std::size_t more_of(std::int32_t stream, std::span<char> room, bool& ends) override;

  task<> drive(std::shared_ptr<client_resources> client);
  task<> read_all();
  task<> write_all();
  bool take_input();
  void lose(std::string why, stream_failure how = stream_failure::lost);
  void fail_all();
  void refuse_waiting();
  void count(asked_stream& exchange);
  void note_end() noexcept override;
  void free_ended() noexcept override;
  void fail(asked_stream& exchange, stream_failure how, std::string why);
  bool is_over() const noexcept;
  asked_stream* find(std::int32_t stream) noexcept;

  static constexpr std::size_t write_bytes = 64 * 1024;

  client_resources& core_;  // the driver and each exchange keep it alive, and the owner
  stream_owner& owner_;
  const std::string origin_;
  wire_ptr wire_;
  h2::client_session& session_;  // of the wire

  std::mutex mutex_;
  std::unordered_map<std::int32_t, stream_ptr> streams_;
  base::intrusive_list<asked_stream, &asked_stream::link> living_;
  std::size_t places_ = 1;
  std::size_t expected_ = SIZE_MAX;
  std::optional<std::size_t> said_max_;
  std::atomic<bool> ends_streams_{false};  // some were asked to end, since too much is kept
  bool freed_ = false;                     // a place has become free
  sharing_stage stage_;
  bool unread_ = false;  // the reader has ended
  std::string lost_;     // why the connection was lost
  stream_failure how_ = stream_failure::lost;
  std::chrono::nanoseconds heard_at_{0};
  std::stop_source reading_;
  event settings_came_;
  event to_send_;
};

}  // namespace troupe::http
