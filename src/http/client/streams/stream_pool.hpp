// stream_pool: which connection of HTTP/2 a request goes over, and which request opens one.
//
// While a connection to an origin is being opened, further requests wait for it: if it speaks
// HTTP/2, they share it, up to the limits of both ends; else each has one of its own. A further
// connection is opened when all are full.
// Invariants
//   P1  at most one caller at a time has the right to connect to an origin that is not plain.
//   P2  a caller that waits is in the list of its origin until it is given its turn, under the
//       mutex.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/client/client_resources.hpp"
#include "http/client/streams/stream_connection.hpp"
#include "http/client/wires/connection_slots.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

class stream_pool;

// The right of a request: to ask at a place that is reserved for it, or to connect.
class stream_turn {
 public:
  stream_turn() noexcept {}
  stream_turn(stream_pool& pool, std::string origin) : pool_(&pool), origin_(std::move(origin)) {}
  stream_turn(stream_turn&& other) noexcept { swap(other); }
  stream_turn& operator=(stream_turn&& other) noexcept {
    stream_turn(std::move(other)).swap(*this);
    return *this;
  }
  ~stream_turn() { give_back(); }

  bool has_place() const noexcept { return on_ != nullptr; }
  // The place is the caller's now.
  std::shared_ptr<stream_connection> take() noexcept { return std::exchange(on_, nullptr); }
  std::optional<connection_slot>& slot() noexcept { return slot_; }

  // How the caller's connecting has ended. `failure`: why there is no connection.
  void connected(std::shared_ptr<stream_connection> connection);
  void connected_plain();
  void failed(std::exception_ptr failure);

 private:
  friend class stream_pool;
  void give_back() noexcept;
  void swap(stream_turn& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(origin_, other.origin_);
    std::swap(on_, other.on_);
    std::swap(connects_, other.connects_);
    // A slot is not assignable.
    std::optional<connection_slot> mine;
    if (slot_) mine.emplace(std::move(*slot_));
    slot_.reset();
    if (other.slot_) slot_.emplace(std::move(*other.slot_));
    other.slot_.reset();
    if (mine) other.slot_.emplace(std::move(*mine));
  }

  stream_pool* pool_ = nullptr;
  std::string origin_;
  std::shared_ptr<stream_connection> on_;  // with a place
  std::optional<connection_slot> slot_;
  bool connects_ = false;  // has the right to connect (P1)
};

class stream_pool final : private stream_owner {
 public:
  explicit stream_pool(client_resources& core) noexcept : core_(core) {}

  // Waits for the turn, in the order of the callers. Throws origin_full, timed_out, cancelled, and
  // why the caller before could not connect.
  task<stream_turn> take(std::string origin, tasks::limits within);

  // A connection over the wire. It belongs to this pool once a caller's turn has added it.
  std::shared_ptr<stream_connection> make(wire_ptr wire) {
    stream_owner& owner = *this;
    return std::make_shared<stream_connection>(core_, owner, std::move(wire));
  }

 private:
  friend class stream_turn;
  struct waiter {
    stream_turn turn;
    std::exception_ptr failure;
    bool is_listed = false;
    event ready;
  };
  struct origin_state {
    std::vector<std::shared_ptr<stream_connection>> open;
    std::deque<waiter*> waiting;
    bool connecting = false;
    // The latest limit of a server; so many are asked before a new connection states its own.
    std::size_t streams_max = SIZE_MAX;
    bool is_plain = false;  // the last connection spoke HTTP/1.1
  };
  class withdrawal;
  using events = std::vector<event>;

  void freed(const std::string& origin) override;
  bool retire(stream_connection& connection) override;
  origin_state& state_of(const std::string& origin);
  bool give(origin_state& state, const std::string& origin, stream_turn& turn);
  void serve(origin_state& state, const std::string& origin, events& ready);
  static void set_all(const events& ready);
  void end_connecting(stream_turn& turn, std::shared_ptr<stream_connection> connection,
                      bool is_plain, const std::exception_ptr& failure);

  client_resources& core_;
  std::mutex mutex_;
  std::map<std::string, origin_state> all_;
  std::size_t prune_at_ = 64;
};

}  // namespace troupe::http
