#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "http/secure/secret_stream.hpp"
#include "http/server/connection_over.hpp"
#include "http/server/server_state.hpp"
#include "troupe/http/server.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::http {

namespace {

using namespace std::chrono_literals;

// After stop(): how long to wait for a connection that is in the listener's backlog.
constexpr std::chrono::nanoseconds backlog_wait = 1ms;
constexpr int backlog_most = 4096;
// How long to wait until connections that were aborted are gone.
constexpr std::chrono::nanoseconds end_wait = 200ms;

std::string peer_of(const tcp_stream& of) {
  try {
    std::string text = of.peer().to_string();
    text.resize(text.rfind(':'));
    return text;
  } catch (const io_error&) {  // the peer has already gone
    return "";
  }
}
std::string peer_of(const unix_stream&) { return ""; }

// Keeps a connection in the server's list for as long as the connection lives, unless it is parked.
class entry {
 public:
  entry(server_state& in, connection& of) : in_(in), of_(of) { in_.enter(of_); }
  entry(const entry&) = delete;
  ~entry() { in_.leave(of_); }

 private:
  server_state& in_;
  connection& of_;
};

std::optional<endpoint> endpoint_of(const tcp_stream& over) {
  try {
    return over.peer();
  } catch (const io_error&) {
    return std::nullopt;
  }
}

void begin_secretly(admission_ticket who, tcp_stream over, const tls_context& self) {
  const std::shared_ptr<server_state>& state = who.of();
  handshakes::ticket begun(std::shared_ptr<handshakes>(state, &state->secure));
  const std::optional<endpoint> at = endpoint_of(over);
  secret_stream secret(tls_stream::server(self, std::move(over)), at, std::move(begun));
  static_cast<void>(spawn(converse(std::move(who), std::move(secret), connection_past())));
}

template <class Stream>
void begin(const std::shared_ptr<server_state>& state, Stream over,
           const std::optional<tls_context>& secret) {
  admission_ticket who(state, peer_of(over));
  if constexpr (std::is_same_v<Stream, tcp_stream>) {
    if (secret) return begin_secretly(std::move(who), std::move(over), *secret);
  }
  static_cast<void>(spawn(converse(std::move(who), std::move(over), connection_past())));
}

template <class Listener>
task<> accept_backlog(std::shared_ptr<server_state> state, Listener& listener,
                      const std::optional<tls_context>& secret) {
  try {
    for (int i = 0; i < backlog_most && !state->is_full(); ++i) {
      auto peer = co_await listener.accept().timeout(backlog_wait);
      begin(state, std::move(peer), secret);
    }
  } catch (const timed_out&) {
  } catch (const io_error&) {
  }
}

template <class Listener>
task<> serve_on(std::shared_ptr<server_state> state, Listener listener,
                std::optional<tls_context> secret = {}) {
  auto begin_one = [&](auto&& peer) { begin(state, std::move(peer), secret); };
  protocols::admission& limits =
      secret ? static_cast<protocols::admission&>(state->secure) : *state;
  co_await protocols::accept_within(limits, listener, state->accepting.get_token(), begin_one);
  co_await accept_backlog(state, listener, secret);
  listener.close();
  bool is_late = false;
  try {
    co_await state->drained.wait().timeout(state->options.drain_time);
  } catch (const timed_out&) {
    is_late = true;
  }
  if (!is_late) co_return;
  state->end_all();
  try {
    co_await state->drained.wait().timeout(end_wait);
  } catch (const timed_out&) {
    // A handler waits for something other than its peer: the server must not end that.
  }
}

}  // namespace

namespace {

const char* describe_handler(sched::message*, void*, sched::message_act) {
  return "a handler of HTTP";
}

}  // namespace

template <class Stream>
task<> converse(admission_ticket who, Stream over, connection_past was) {
  const bool is_welcome = who.is_welcome();
  server_state& in = *who.of();
  connection_over<Stream> talk(std::move(who), std::move(over), was);
  std::optional<entry> place;
  try {
    if (is_welcome) {
      place.emplace(in, talk);
      co_await talk.run();
    } else {
      co_await talk.turn_away();
    }
  } catch (const tls_error& e) {  // the peer's bytes are damaged, or it has ended without a word,
    in.secure.count(later_event_of(e.reason()));
  } catch (const io_error&) {   // or the peer has gone,
  } catch (const timed_out&) {  // or is too slow,
  } catch (const cancelled&) {  // or the operation was cancelled
  }
  if (std::exception_ptr what = talk.take_failure())
    submissions::report(std::move(what), talk.failed_memory(), &describe_handler);
}

server::server(router routes, const server_options& options) {
  routes.check_is_here();
  state_ = std::make_shared<server_state>(std::move(routes), options);
}

task<> server::serve(tcp_listener listener) { return serve_on(state_, std::move(listener)); }
task<> server::serve(tcp_listener listener, tls_context self) {
  return serve_on(state_, std::move(listener), std::move(self));
}
task<> server::serve(unix_listener listener) { return serve_on(state_, std::move(listener)); }

void server::stop() const { state_->stop(); }

std::size_t server::connections() const noexcept { return state_->count(); }

handshake_counts server::handshakes() const noexcept { return state_->secure.counts(); }

}  // namespace troupe::http
