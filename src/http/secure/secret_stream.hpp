// secret_stream: the stream of a connection over TLS, and its handshake.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <utility>

#include "http/secure/handshakes.hpp"
#include "http/server/calls/rejection_linger.hpp"
#include "tls/wire_of.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::http {

// A TLS stream that keeps the address of its peer. The address is read before the TLS stream is
// made, because afterwards the TCP stream below it cannot be reached. Empty when the peer had
// already gone.
class secret_stream : public tls_stream {
 public:
  secret_stream(tls_stream&& secured, std::optional<endpoint> at, handshakes::ticket begun) noexcept
      : tls_stream(std::move(secured)), at_(at), begun_(std::move(begun)) {}

  // Throws io_error when the peer had already gone.
  endpoint peer() const;
  stream& wire() noexcept { return tls::wire_of::in(*this); }
  // Nothing is read or written for a while: gives memory back. Returns false when something is
  // there to be read.
  bool rest() noexcept;

  // Whether the client's share of handshakes has room. Otherwise wait_for_turn() waits for it; it
  // returns false when the server has ended the connection meanwhile.
  bool try_turn() { return begun_.try_begin(); }
  task<bool> wait_for_turn(std::stop_token stop);
  // Makes the handshake, and counts how it ends. Returns false if it has failed: then the peer has
  // got an alert, as far as possible, and the connection is to be closed. `at_most`: the time of
  // the handshake. `rejected`: outlives the task.
  task<bool> begin(std::chrono::nanoseconds at_most, rejection_lingers& rejected,
                   std::stop_token stop);

 private:
  task<secure_event> shake(std::chrono::nanoseconds at_most, std::stop_token stop);
  task<> answer_in_clear();
  task<> linger();

  std::optional<endpoint> at_;
  handshakes::ticket begun_;
};

}  // namespace troupe::http
