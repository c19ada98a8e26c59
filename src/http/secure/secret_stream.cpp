#include "http/secure/secret_stream.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "io/sockets/sockets.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {
namespace {

constexpr std::string_view answer_to_plain_http =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 76\r\n"
    "Connection: close\r\n\r\n"
    "This port speaks HTTPS only: ask for the same with https instead of http://\n";
// How long a peer has to read why its handshake has failed, and how much it may still send.
constexpr std::chrono::milliseconds linger_time{500};
constexpr std::size_t linger_bytes = 64 * 1024;

}  // namespace

endpoint secret_stream::peer() const {
  if (!at_) throw io_error("getpeername", "a connection whose client has gone", ENOTCONN);
  return *at_;
}

bool secret_stream::rest() noexcept {
  if (has_input()) return false;
  tls::wire_of::rest(*this);
  return true;
}

task<bool> secret_stream::wait_for_turn(std::stop_token stop) {
  const bool has_begun = co_await begun_.begin(std::move(stop));
  if (!has_begun) begun_.count(secure_event::ended_by_server);
  co_return has_begun;
}

task<bool> secret_stream::begin(std::chrono::nanoseconds at_most, rejection_lingers& rejected,
                                std::stop_token stop) {
  const secure_event how = co_await shake(at_most, std::move(stop));
  begun_.count(how);
  if (how == secure_event::done && resumed()) begun_.count(secure_event::resumed);
  begun_.give_back();
  const bool is_told = how == secure_event::plain_http || how == secure_event::bad_certificate ||
                       how == secure_event::bad_protocol;
  if (is_told) {
    const rejection_linger said(rejected);
    if (how == secure_event::plain_http) co_await answer_in_clear();
    if (said.may_linger()) co_await linger();
  }
  co_return how == secure_event::done;
}

task<secure_event> secret_stream::shake(std::chrono::nanoseconds at_most, std::stop_token stop) {
  secure_event how = secure_event::done;
  try {
    co_await handshake().timeout(at_most).stop(std::move(stop));
  } catch (const tls_error& e) {
    how = handshake_event_of(e.reason());
  } catch (const timed_out&) {
    how = secure_event::timed_out;
  } catch (const cancelled&) {
    how = secure_event::ended_by_server;
  } catch (const io_error&) {
    how = secure_event::lost;
  }
  co_return how;
}

task<> secret_stream::answer_in_clear() {
  try {
    co_await wire().write_all(answer_to_plain_http).timeout(linger_time);
  } catch (const error&) {  // the peer does not read the answer
  }
}

// Closing at once, with bytes that were not read, would reset the connection, and the peer might
// never see the alert or the answer.
task<> secret_stream::linger() {
  static_cast<void>(io::current_kernel().shutdown(fd(), SHUT_WR));
  std::array<char, 1024> room;
  const std::chrono::nanoseconds until = now() + linger_time;
  for (std::size_t left = linger_bytes; left > 0;) {
    const std::chrono::nanoseconds span = until - now();
    std::size_t bytes = 0;
    try {
      bytes = co_await wire().read(std::span<char>(room)).timeout(span);
    } catch (const error&) {
    }
    if (bytes == 0) break;
    left -= std::min(left, bytes);
  }
}

}  // namespace troupe::http
