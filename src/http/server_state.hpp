// server_state: what the connections of a server share: its routes and limits, who they are, and the sweep that ends those
// whose time is over.
//
// Threads: any; the list and the counts are the mutex's. Connections enter and leave it; they are in it for as long as they
// live, so that who holds the mutex may end one (connection::end), which only asks its operation to end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "troupe/http/options.hpp"
#include "troupe/http/router.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

class connection;

struct server_state : std::enable_shared_from_this<server_state> {
  server_state(router table, const server_options& chosen);

  const router routes;
  const server_options options;

  // One more was accepted, or is no more.
  void admit();
  void dismiss() noexcept;
  // It is there to be looked after, or is no more. `peer` is its address, "" for none. False when that has too many: then it
  // has not entered.
  bool enter(connection& one, const std::string& peer);
  void leave(connection& one, const std::string& peer) noexcept;
  bool is_full() const noexcept;
  // Ends idle connections, the longest first: one in sixteen, one at least. False when there is none.
  bool shed();
  void end_all() noexcept;
  // One that was late can send its answer.
  void revive(connection& one);
  void stop();
  // Ends those that are late, until there are no connections.
  static task<> sweep(std::shared_ptr<server_state> self);

  std::stop_source stopping;             // no more connections; the present requests are the last
  std::stop_source accepting;            // the same, for who accepts
  event changed;                         // set when a connection has left
  event drained;                         // set while there is none
  std::atomic<std::size_t> buffered{0};  // bytes

  std::size_t count() const;

 private:
  std::int64_t end_late(std::int64_t now_ns) noexcept;

  mutable std::mutex mutex_;
  connection* first_ = nullptr;
  std::atomic<std::size_t> count_{0};
  bool sweeping_ = false;
  std::unordered_map<std::string, std::size_t> of_peer_;
};

}  // namespace troupe::http
