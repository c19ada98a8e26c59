#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "http/behind_proxy/address.hpp"
#include "http/behind_proxy/reports/receive_header.hpp"
#include "http/secure/secret_stream.hpp"
#include "http/server/accept/connection_over.hpp"
#include "http/server/server_numbers.hpp"
#include "http/server/server_state.hpp"
#include "runtime/observing/numbers/component_list.hpp"
#include "troupe/http/server.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::http {

namespace {

using namespace std::chrono_literals;

// After stop(): how long to wait for a connection that is in the listener's backlog.
constexpr std::chrono::nanoseconds backlog_wait = 1ms;
constexpr int backlog_most = 4096;
// How long to wait until aborted connections have ended.
constexpr std::chrono::nanoseconds end_wait = 200ms;

// For whom the connection counts: "" for a trusted proxy, and for a Unix socket.
std::string peer_of(const server_state& server, const tcp_stream& stream) {
  try {
    const endpoint at = stream.peer();
    return contains(server.options.trusted_proxies, &at) ? std::string() : client_key(at);
  } catch (const io_error&) {  // the peer has already gone
    return "";
  }
}
std::string peer_of(const server_state&, const unix_stream&) { return ""; }

// Keeps a connection in the server's list for as long as the connection lives, unless it is parked.
class entry {
 public:
  entry(server_state& server, connection& listed) : server_(server), listed_(listed) {
    server_.enter(listed_);
  }
  entry(const entry&) = delete;
  ~entry() { server_.leave(listed_); }

 private:
  server_state& server_;
  connection& listed_;
};

std::optional<endpoint> endpoint_of(const tcp_stream& over) {
  try {
    return over.peer();
  } catch (const io_error&) {
    return std::nullopt;
  }
}

// Whether the header of a proxy is expected from there.
bool is_of_proxy(const server_state& server, const tcp_stream& over) {
  const std::optional<endpoint> at = endpoint_of(over);
  return at && contains(server.options.proxy_protocol.from, &*at);
}
bool is_of_proxy(const server_state& server, const unix_stream&) {
  return contains(server.options.proxy_protocol.from, nullptr);
}

// The address for which the connection counts; "" for none.
template <class Stream>
std::string address_of(const server_state& server, const Stream& over, const proxy_header& said) {
  switch (said.from) {
    case proxy_header::origin::proxy:
      return peer_of(server, over);
    case proxy_header::origin::address:
      return client_key(said.client);
    case proxy_header::origin::unnamed:
      break;
  }
  return "";
}

std::unique_ptr<proxy_header> client_in(const proxy_header& said) {
  return said.from == proxy_header::origin::proxy ? nullptr : std::make_unique<proxy_header>(said);
}

void begin_secretly(admission_ticket ticket, tcp_stream over, const tls_context& self) {
  const std::shared_ptr<server_state>& state = ticket.of();
  handshakes::ticket begun(std::shared_ptr<handshakes>(state, &state->secure), ticket.counted());
  const std::optional<endpoint> at = endpoint_of(over);
  secret_stream secret(tls_stream::server(self, std::move(over)), at, std::move(begun));
  if (h2::is_on(state->options)) tls::wire_of::also_speaks(secret, "h2", "http/1.1");
  static_cast<void>(
      spawn(converse(std::move(ticket), std::move(secret), connection_past(), nullptr)));
}

template <class Stream>
void begin_to_talk(admission_ticket ticket, Stream over, const std::optional<tls_context>& secret) {
  if constexpr (std::is_same_v<Stream, tcp_stream>) {
    if (secret) return begin_secretly(std::move(ticket), std::move(over), *secret);
  }
  static_cast<void>(
      spawn(converse(std::move(ticket), std::move(over), connection_past(), nullptr)));
}

// Reads the header with which a proxy begins the connection, then lets the connection begin.
template <class Stream>
task<> begin_after_header(admission_ticket ticket, Stream over, std::optional<tls_context> secret) {
  const std::shared_ptr<server_state> state = ticket.of();
  task<std::optional<proxy_header>> header = receive_proxy_header(
      state->options.proxy_protocol, state->stopping.get_token(), state->proxied, over);
  const std::optional<proxy_header> said = co_await std::move(header);
  if (!said) co_return;
  ticket.set_client(address_of(*state, over, *said), client_in(*said));
  begin_to_talk(std::move(ticket), std::move(over), secret);
}

template <class Stream>
void begin(const std::shared_ptr<server_state>& state, Stream over,
           const std::optional<tls_context>& secret) {
  if (state->options.proxy_protocol.from.empty()) [[likely]] {
    admission_ticket ticket(state, peer_of(*state, over));
    return begin_to_talk(std::move(ticket), std::move(over), secret);
  }
  if (!is_of_proxy(*state, over)) return state->proxied.count(proxy_header_event::untrusted);
  static_cast<void>(
      spawn(begin_after_header(admission_ticket(state, ""), std::move(over), secret)));
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

// Returns whether all connections have ended in that time.
task<bool> drains_within(std::shared_ptr<server_state> state, std::chrono::nanoseconds span,
                         std::stop_token hurry = {}) {
  bool is_in_time = true;
  try {
    co_await state->drained.wait().timeout(span).stop(hurry);
  } catch (const timed_out&) {
    is_in_time = false;
  } catch (const cancelled&) {
    if (!hurry.stop_requested()) throw;
    is_in_time = false;
  }
  co_return is_in_time;
}

std::string name_of(const tcp_listener& at) { return at.local().to_string(); }
std::string name_of(const unix_listener&) { return "a Unix socket"; }

// Where a browser of this machine reaches the page; empty if it cannot.
std::string page_at(const tcp_listener& at, const std::string& path, bool is_secret) {
  if (path.empty()) return "";
  std::string name = at.local().to_string();
  for (const std::string_view any : {"0.0.0.0:", "[::]:"}) {
    if (name.starts_with(any)) name = "localhost:" + name.substr(any.size());
  }
  return (is_secret ? "https://" : "http://") + name + path;
}
std::string page_at(const unix_listener&, const std::string&, bool) { return ""; }

observing::component_list::entry show(const std::shared_ptr<server_state>& state, std::string name,
                                      std::string page) {
  return observing::components_here("http::server::serve")
      ->add({"http", "server", std::move(name),
             [state](observe::row_sink& to, const std::vector<std::string>& labels) {
               collect(to, labels, *state);
             },
             [page = std::move(page)](observing::json_text& text) {
               if (!page.empty()) text.member("page", page);
             }});
}

template <class Listener>
task<> serve_on(std::shared_ptr<server_state> state, Listener listener,
                std::optional<tls_context> secret = {}) {
  const observing::component_list::entry shown =
      show(state, name_of(listener), page_at(listener, state->routes.page(), secret.has_value()));
  auto begin_one = [&](auto&& peer) { begin(state, std::move(peer), secret); };
  protocols::admission& limits =
      secret ? static_cast<protocols::admission&>(state->secure) : *state;
  co_await protocols::accept_within(limits, listener, state->accepting.get_token(), begin_one);
  co_await accept_backlog(state, listener, secret);
  listener.close();
  if (const std::chrono::nanoseconds idle_time = state->idle_time(); idle_time.count() > 0) {
    task<bool> idle_ones = drains_within(state, idle_time, state->hurried.get_token());
    const bool is_in_time = co_await std::move(idle_ones);
    if (is_in_time) co_return;
    state->stop();
  }
  task<bool> busy_ones = drains_within(state, state->options.drain_time);
  const bool is_in_time = co_await std::move(busy_ones);
  if (is_in_time) co_return;
  state->end_all();
  // A function that a thread runs to its end, and that a handler awaits, cannot be ended.
  task<bool> rest = drains_within(state, end_wait);
  static_cast<void>(co_await std::move(rest));
}

}  // namespace

template <class Stream>
task<> converse(admission_ticket ticket, Stream over, connection_past was,
                std::unique_ptr<h2::conversation> begun) {
  const bool is_welcome = ticket.is_welcome();
  server_state& server = *ticket.of();
  connection_over<Stream> talk(std::move(ticket), std::move(over), was, std::move(begun));
  std::optional<entry> place;
  try {
    if (is_welcome) {
      place.emplace(server, talk);
      tasks::task_limits limits;
      limits.stop = server.ending.get_token();
      limits.is_last_resort = true;
      task<> within = tasks::run_within(talk.run(), std::move(limits));
      co_await std::move(within);
    } else {
      co_await talk.turn_away();
    }
  } catch (const tls_error& e) {  // the peer's bytes are damaged, or it has ended without a word,
    server.secure.count(later_event_of(e.reason()));
  } catch (const io_error&) {   // or the peer has disconnected,
  } catch (const timed_out&) {  // or is too slow,
  } catch (const cancelled&) {  // or the operation was cancelled
  }
  talk.report();
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
void server::drain(time_span idle_time) const { state_->drain(idle_time); }

std::size_t server::connections() const noexcept { return state_->count(); }

http2_counts server::http2() const noexcept { return state_->http2.all(); }

proxy_header_counts server::proxy_headers() const noexcept { return state_->proxied.all(); }

kept_counts server::kept() const noexcept {
  const base::ledger::totals now = state_->kept.now();
  return {now.bytes, now.descriptors, now.peers, now.largest_peer_bytes, now.ended};
}

handshake_counts server::handshakes() const noexcept { return state_->secure.counts(); }

}  // namespace troupe::http
