// Opens a WebSocket as a client, and carries it over a client's connection.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <stop_token>
#include <utility>

#include "http/client/connect.hpp"
#include "http/client/exchange.hpp"
#include "http/client/sending/client_core.hpp"
#include "http/client/sending/reach.hpp"
#include "http/client/streams/kept_socket.hpp"
#include "http/client/streams/stream_transport.hpp"
#include "http/fields/field_line.hpp"
#include "http/h1/send_order.hpp"
#include "http/routing/response_parts.hpp"
#include "http/websocket/handshake/websocket_terms.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/io/error.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {
namespace {

class client_transport final : public kept_transport {
 public:
  client_transport(wire_ptr wire, const std::shared_ptr<client_core>& core, const url& at)
      : wire_(std::move(wire)),
        write_time_(core->options.write_time),
        pace_{core->options.body_rate, core->options.body_grace},
        kept_(core, at.origin(), at.to_string(), *this) {}

  slowest_pace message_pace() const noexcept override { return pace_; }
  void retains(std::size_t bytes) noexcept override { kept_.count(bytes); }
  void frees_by(free_function free, websocket* keeper) noexcept override {
    kept_.frees_by(free, keeper);
  }
  void lay_down() noexcept override { kept_.lay_down(); }
  bool take_up() noexcept override { return kept_.take_up(); }
  bool is_ended() const noexcept override { return kept_.is_ended(); }
  void check_kept() const override { kept_.check(); }

  task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) override {
    try {
      co_return co_await wire_->receive_some(to, at_most, reading_.get_token());
    } catch (const tls_error& e) {
      if (e.reason() != tls_failure::truncated) throw;
    }
    co_return 0;
  }

  task<> send(std::string_view bytes) override {
    const send_order::turn mine(order_);
    if (!mine.has_come()) co_await mine.comes();
    if (cut_off_ || kept_.is_ended())
      throw io_error("send", "a connection on which something was given up in the middle", EPIPE);
    for (bool in_part = wire_->is_secure(); !bytes.empty(); in_part = true) {
      std::size_t sent = 0;
      try {
        sent = co_await wire_->send_some(bytes, write_time_);
      } catch (...) {
        cut_off_ = cut_off_ || in_part;
        throw;
      }
      bytes.remove_prefix(sent);
    }
  }
  task<> send_owned(std::string bytes) override { co_await send(bytes); }
  task<std::uint64_t> send_file(const file&, std::uint64_t, std::uint64_t) override {
    throw usage_error("troupe: http::websocket: files are sent by servers only");
  }

 private:
  void end_freed() noexcept override { reading_.request_stop(); }

  const wire_ptr wire_;
  const std::chrono::nanoseconds write_time_;
  const slowest_pace pace_;
  send_order order_;
  bool cut_off_ = false;  // a part of a frame was sent, and the rest will never be
  std::stop_source reading_;
  kept_socket kept_;
};

template <class Transport>
struct carried {
  Transport over;
};
// `Transport`: over a connection of its own, or over a stream of a connection.
template <class Transport>
class client_websocket final : carried<Transport>, public websocket {
 public:
  template <class Wire>
  client_websocket(Wire over, const std::shared_ptr<client_core>& core, const url& at,
                   std::string begun, const websocket_options& options, websocket_terms terms)
      : carried<Transport>{{std::move(over), core, at}},
        websocket(carried<Transport>::over, std::move(begun), options, std::move(terms)) {}
};

// Turns ws://host/ into http://host/.
url url_of(const client_request& asked) {
  const std::string& text = asked.url();
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view scheme = std::string_view(text).substr(0, colon);
  if (same_word(scheme, "ws")) return client_access::url_of(asked, "http" + text.substr(colon));
  if (same_word(scheme, "wss")) return client_access::url_of(asked, "https" + text.substr(colon));
  return client_access::url_of(asked);
}

void check_request(client_request& asked) {
  if (asked.method() != "GET" || client_access::has_body(asked)) {
    throw usage_error("troupe: http::client::websocket: the request is a " + asked.method() +
                      (client_access::has_body(asked) ? " with a body" : "") +
                      ": ask by a GET without a body");
  }
  constexpr std::string_view own = "Sec-WebSocket-";
  for (std::string_view left = client_access::fields(asked); !left.empty();) {
    const std::string_view name = take_field_name(left);
    if (!same_word(name.substr(0, own.size()), own)) continue;
    throw usage_error("troupe: http::client::websocket: the field " + std::string(name) +
                      " is the client's own: set websocket_options");
  }
}

// The fields of the handshake that are the same for both protocols.
std::string lines_for(const client_core& core, client_request& asked, const url& at,
                      const route& by, const websocket_options& options) {
  std::string lines;
  if (!core.options.user_agent.empty())
    append_field(lines, "User-Agent", core.options.user_agent, "client_options");
  return lines + "Sec-WebSocket-Version: 13\r\n" + offer_lines(options) + fields_for(asked, by) +
         cookie_line(core, asked, at, request_site::same);
}

bool is_accepted(const fields& answer, const std::string& key) {
  bool upgrades = false;
  for (const field field : answer)
    upgrades |= same_word(field.name, "Connection") && lists_word(field.value, "upgrade");
  return upgrades && same_word(answer["Upgrade"], "websocket") &&
         answer.count("Sec-WebSocket-Accept") == 1 &&
         answer["Sec-WebSocket-Accept"] == websocket_answer_to(key);
}

[[noreturn]] void throw_refused(const exchange& answer) {
  const int status = answer.status();
  std::string said = "the server began no WebSocket, it answered " + std::to_string(status);
  if (!answer.reason().empty()) said += " " + std::string(answer.reason());
  throw client_error(client_failure::not_upgraded, answer.where(), said, fault::none, status);
}

websocket_terms terms_of(const exchange& answer, const websocket_options& options) {
  websocket_terms terms;
  terms.is_client = true;
  const std::string wrong = take_terms(answer.fields(), options, terms);
  if (!wrong.empty())
    throw client_error(client_failure::bad_handshake, answer.where(),
                       "the server's answer does not fit our offer: " + wrong);
  return terms;
}

// The arguments for opening a WebSocket.
struct wanted {
  std::shared_ptr<client_core> core;
  client_request asked;
  websocket_options options;
  url at;
  route by;
  std::string lines;
};

task<std::unique_ptr<websocket>> upgrade(wanted& plan, std::shared_ptr<wire_exchange> handshake) {
  const std::string key = websocket_key();
  const std::string head =
      first_lines("GET", plan.at, plan.by) +
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: " + key + "\r\n" +
      plan.lines + "\r\n";
  handshake->may_upgrade();
  co_await handshake->send(head);
  co_await handshake->read_head(method::get);
  keep_cookies(*plan.core, *handshake);
  if (handshake->status() != 101) throw_refused(*handshake);
  if (!is_accepted(handshake->fields(), key)) {
    throw client_error(client_failure::bad_handshake, handshake->where(),
                       "the server's 101 is no answer to a request for a WebSocket");
  }
  websocket_terms terms = terms_of(*handshake, plan.options);
  wire_ptr wire = handshake->take_wire();
  std::string begun(wire->input());
  wire->release_buffer();
  co_return std::make_unique<client_websocket<client_transport>>(
      std::move(wire), plan.core, plan.at, std::move(begun), plan.options, std::move(terms));
}

std::unique_ptr<websocket> made_of(const wanted& plan, std::shared_ptr<stream_exchange> over) {
  keep_cookies(*plan.core, *over);
  if (over->status() < 200 || over->status() > 299) throw_refused(*over);
  websocket_terms terms = terms_of(*over, plan.options);
  return std::make_unique<client_websocket<stream_transport>>(
      std::move(over), plan.core, plan.at, std::string(), plan.options, std::move(terms));
}

// By HTTP/2 if the connection speaks it and the server allows this (RFC 8441), else by HTTP/1.1.
task<std::unique_ptr<websocket>> open(std::shared_ptr<client_core> core, client_request asked,
                                      websocket_options options, tasks::limits within) {
  check_options(options);
  check_request(asked);
  const url at = url_of(asked);
  const route by = route_to(*core, at, true);
  std::string lines = lines_for(*core, asked, at, by, options);
  wanted plan{std::move(core), std::move(asked), std::move(options), at, by, std::move(lines)};
  repetition again(true, false);
  for (;;) {
    const reached connected =
        co_await reach(plan.core, plan.at, plan.by, within, again.wants_fresh());
    if (connected.wire != nullptr) co_return co_await upgrade(plan, connected.wire);
    plan.by.streams = co_await connected.stream->may_connect();
    if (!plan.by.streams) continue;
    connected.stream->connect("websocket");
    const attempt ended = co_await try_once(*connected.stream, plan.asked, plan.by, plan.lines);
    if (ended.failure == nullptr) co_return made_of(plan, connected.stream);
    const bool follows = co_await again.follows(connected, ended, within);
    if (!follows) std::rethrow_exception(ended.failure);
  }
}

}  // namespace

task<std::unique_ptr<websocket>> websocket_call::start(tasks::limits within) && {
  return open(std::move(by_), std::move(asked_), std::move(options_), std::move(within));
}

}  // namespace troupe::http
