#include "http/client/connect.hpp"

#include <utility>

#include "http/fields/field_line.hpp"
#include "troupe/dns/connect.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {

namespace {

constexpr int interim_max = 16;  // interim answers (1xx) to CONNECT

std::string authorization_line(const proxy_server& proxy) {
  std::string line;
  if (!proxy.authorization.empty())
    append_field(line, "Proxy-Authorization", proxy.authorization, "proxies");
  return line;
}

[[noreturn]] void fail(client_failure why, const url& peer, const proxy_server& by,
                       const std::string& problem, int status = 0) {
  throw client_error(why, peer.to_string(), "the proxy " + by.at.authority() + " " + problem,
                     fault::none, status);
}

task<tcp_stream> connect_plain(client_resources& core, const url& peer,
                               const tasks::limits& within) {
  co_return co_await troupe::connect(peer.host(), peer.port(), core.options.resolver)
      .timeout(within.left())
      .stop(within.stop());
}

// The separate error type lets the caller distinguish the proxy's absence from the target's.
task<tcp_stream> connect_proxy(client_resources& core, const url& to, const proxy_server& by,
                               const tasks::limits& within) {
  std::string why;
  try {
    co_return co_await connect_plain(core, by.at, within);
  } catch (const io_error& e) {
    why = e.what();
  } catch (const resolve_error& e) {
    why = e.what();
  }
  fail(client_failure::proxy_unreachable, to, by, "cannot be reached (" + why + ")");
}

// Reads the head of the answer to CONNECT; returns its status.
task<int> read_status(client_wire& wire, const url& to, const proxy_server& by,
                      const tasks::limits& within) {
  for (int interim = 0; interim <= interim_max;) {
    wire.reads.answers(method::head);  // the answer ends with its head, whatever its fields contain
    const parser::step step = wire.reads.next(wire.input());
    const int status = wire.reads.head().status;
    wire.consume(step.consumed);
    if (step.what == parser::event::refused) break;
    if (step.what == parser::event::head && status >= 200) co_return status;
    if (step.what == parser::event::head) ++interim;
    if (step.what != parser::event::need_more) continue;
    const std::size_t bytes = co_await wire.receive(within);
    if (bytes == 0) fail(client_failure::proxy_refused, to, by, "has closed the connection");
  }
  fail(client_failure::proxy_refused, to, by, "has answered something that is not HTTP/1.1");
}

// Returns the stream that leads to the target.
task<tcp_stream> open_tunnel(client_resources& core, const url& peer, const proxy_server& by,
                             const tasks::limits& within) {
  tcp_stream plain = co_await connect_proxy(core, peer, by, within);
  const wire_ptr wire = core.make_wire(std::move(plain));
  const std::string target = peer.host() + ":" + std::to_string(peer.port());
  std::string head = "CONNECT " + target + " HTTP/1.1\r\n";
  append_field(head, "Host", target, "client");
  head += authorization_line(by) + "\r\n";
  std::string lost;
  int status = 0;
  try {
    co_await wire->send(head, within, core.options.write_time);
    status = co_await read_status(*wire, peer, by, within);
  } catch (const io_error& e) {
    lost = e.what();
  }
  if (!lost.empty())
    fail(client_failure::proxy_refused, peer, by, "has ended the connection (" + lost + ")");
  if (status >= 300)
    fail(client_failure::proxy_refused, peer, by,
         "opens no connection: it answered " + std::to_string(status), status);
  // No peer may speak in the target's name before the target has spoken.
  if (!wire->input().empty())
    fail(client_failure::proxy_refused, peer, by, "has sent bytes that belong to nothing");
  co_return wire->take_plain();
}

task<tcp_stream> open_stream(client_resources& core, const url& to, const route& by,
                             const tasks::limits& within) {
  if (by.by == nullptr) co_return co_await connect_plain(core, to, within);
  if (by.tunnel) co_return co_await open_tunnel(core, to, *by.by, within);
  co_return co_await connect_proxy(core, to, *by.by, within);
}

task<wire_ptr> connect_within(client_resources& core, const url& peer, const route& by,
                              const tasks::limits& within) {
  tcp_stream plain = co_await open_stream(core, peer, by, within);
  wire_ptr wire;
  if (!peer.secure()) {
    wire = core.make_wire(std::move(plain));
  } else {
    const tls_context trust = co_await core.trust(by.streams, within);
    tls_stream secure = tls_stream::client(trust, std::move(plain), peer.host());
    co_await secure.handshake().timeout(within.left()).stop(within.stop());
    wire = core.make_wire(std::move(secure));
  }
  if (by.streams && (!peer.secure() || wire->alpn() == "h2"))
    wire->streams = h2::client_session::make(
        {core.options.http2, {core.options.head_bytes, core.options.fields, 0}});
  co_return wire;
}

}  // namespace

route route_to(const client_resources& core, const url& peer, bool opaque) {
  route result;
  result.by = core.proxies.of(peer);
  result.tunnel = result.by != nullptr && (peer.secure() || opaque);
  result.name = peer.origin();
  if (result.is_absolute()) result.name = "proxy " + result.by->at.authority();
  result.streams = core.options.http2.is_on && h2::server_session::is_available() &&
                   (peer.secure() || (core.options.http2_prior_knowledge && result.by == nullptr));
  result.alone = opaque;
  return result;
}

task<wire_ptr> connect(client_resources& core, const url& peer, const route& by,
                       const tasks::limits& within) {
  const tasks::limits soon = within.within(core.options.connect_time);
  try {
    co_return co_await connect_within(core, peer, by, soon);
  } catch (const timed_out&) {
    throw timed_out("troupe: http: no connection to " + peer.origin() +
                    (by.by == nullptr ? "" : " through the proxy " + by.by->at.authority()) +
                    " in time: try again, or allow more (client_options::connect_time)");
  }
}

std::string first_lines(const std::string& method, const url& peer, const route& by) {
  std::string lines =
      method + " " + (by.is_absolute() ? peer.to_string() : peer.target()) + " HTTP/1.1\r\n";
  append_field(lines, "Host", peer.authority(), "client");
  return by.is_absolute() ? lines + authorization_line(*by.by) : lines;
}

std::string fields_for(client_request& asked, const route& by) {
  std::string fields = client_access::fields(asked);
  // Credentials for a proxy must not come to a target.
  if (!by.is_absolute() || !by.by->authorization.empty())
    strip(fields, {"Proxy-Authorization", "Proxy-Connection"});
  return fields;
}

}  // namespace troupe::http
