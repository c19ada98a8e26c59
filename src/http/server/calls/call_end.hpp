// call_end: ends the function that streams an answer or a request's body, or that talks over a
// WebSocket, when it serves no client any more. docs/protocols/http_ends.md has the rules.
//
// Each such call has a call_end, through which each cause ends the call: the end of the peer, and
// server::stop() for an answer that has no end of its own. The function runs within the stop token
// of its call_end (run()), so that all that it awaits ends as cancelled, and
// this_call::stop_token() is requested. The end of the drain time is no cause here: it ends the
// whole connection (server_state::ending), and with it every call.
//
// Threads: end() may be called on any thread; everything else on the connection's own.
// Invariants
//   E1  the first cause stays, so that the caller of run() sees why the function was cancelled.
//   E2  the cause is stored before the stop is requested.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/task/task.hpp"

namespace troupe::http {

class call_end {
 public:
  enum class cause : std::uint8_t { none, peer_gone, server_stops };

  call_end() = default;
  call_end(const call_end&) = delete;
  call_end& operator=(const call_end&) = delete;

  void end(cause why) noexcept;
  // order: acquire  pairs with end/release (E2)
  cause why() const noexcept { return why_.load(std::memory_order_acquire); }
  // The call ends for that reason when a stop is requested of the token. Once for each reason.
  void follow_client(std::stop_token gone) { client_.emplace(std::move(gone), on_client{this}); }
  void follow_server(std::stop_token stops) { server_.emplace(std::move(stops), on_server{this}); }
  void leave_server() noexcept { server_.reset(); }

  // Runs the function of the call. Returns false if the call was ended, and the function cancelled;
  // throws the function's exception otherwise.
  task<bool> run(task<> function);
  // The same; `watch` runs beside the function, and may end the call.
  task<bool> run(task<> function, task<> watch);

 private:
  struct on_client {
    call_end* self;
    void operator()() const noexcept { self->end(cause::peer_gone); }
  };
  struct on_server {
    call_end* self;
    void operator()() const noexcept { self->end(cause::server_stops); }
  };

  std::atomic<cause> why_{cause::none};
  std::stop_source stop_;
  std::optional<std::stop_callback<on_client>> client_;
  std::optional<std::stop_callback<on_server>> server_;
};

}  // namespace troupe::http
