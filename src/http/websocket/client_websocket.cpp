// Opens a WebSocket as a client, and carries it over a client's connection.
#include <cerrno>
#include <utility>

#include "http/client/connect.hpp"
#include "http/client/exchange.hpp"
#include "http/client/wire_exchange.hpp"
#include "http/h1/send_order.hpp"
#include "http/routing/response_parts.hpp"
#include "http/websocket/websocket_terms.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/io/error.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {
namespace {

class client_transport final : public transport {
 public:
  client_transport(wire_ptr wire, const client_options& options) noexcept
      : wire_(std::move(wire)),
        write_time_(options.write_time),
        pace_{options.body_rate, options.body_grace} {}

  slowest_pace message_pace() const noexcept override { return pace_; }

  task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) override {
    try {
      co_return co_await wire_->receive_some(to, at_most);
    } catch (const tls_error& e) {
      if (e.reason() != tls_failure::truncated) throw;
    }
    co_return 0;
  }

  task<> send(std::string_view bytes) override {
    const send_order::turn mine(order_);
    if (!mine.has_come()) co_await mine.comes();
    if (cut_off_)
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
  const wire_ptr wire_;
  const std::chrono::nanoseconds write_time_;
  const slowest_pace pace_;
  send_order order_;
  bool cut_off_ = false;  // a part of a frame was sent, and the rest will never be
};

struct carried {
  client_transport over;
};
class client_websocket final : carried, public websocket {
 public:
  client_websocket(wire_ptr wire, const client_options& of, std::string begun,
                   const websocket_options& options, websocket_terms terms)
      : carried{{std::move(wire), of}},
        websocket(over, std::move(begun), options, std::move(terms)) {}
};

// Turns ws://host/ into http://host/.
url url_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return url::parse(text);
  const std::string_view scheme = std::string_view(text).substr(0, colon);
  if (same_word(scheme, "ws")) return url::parse("http" + text.substr(colon));
  if (same_word(scheme, "wss")) return url::parse("https" + text.substr(colon));
  return url::parse(text);
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

std::string head_of(const client_core& core, client_request& asked, const url& at, const route& by,
                    const websocket_options& options, const std::string& key) {
  std::string head = first_lines("GET", at, by);
  if (!core.options.user_agent.empty()) head += "User-Agent: " + core.options.user_agent + "\r\n";
  head +=
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
      "13\r\nSec-WebSocket-Key: " +
      key + "\r\n";
  return head + offer_lines(options) + fields_for(asked, by) +
         cookie_line(core, asked, at, request_site::same) + "\r\n";
}

bool is_accepted(const fields& answer, const std::string& key) {
  bool upgrades = false;
  for (const field one : answer)
    upgrades |= same_word(one.name, "Connection") && lists_word(one.value, "upgrade");
  return upgrades && same_word(answer["Upgrade"], "websocket") &&
         answer.count("Sec-WebSocket-Accept") == 1 &&
         answer["Sec-WebSocket-Accept"] == websocket_answer_to(key);
}

task<std::unique_ptr<websocket>> open(std::shared_ptr<client_core> core, client_request asked,
                                      websocket_options options, tasks::limits within) {
  check_options(options);
  check_request(asked);
  const url at = url_of(asked.url());
  const route by = route_to(*core, at, true);
  const std::string key = websocket_key(), head = head_of(*core, asked, at, by, options, key);
  wire_exchange handshake(core, at, within);
  handshake.may_upgrade();
  connection_slot slot = co_await core->slots.take(by.name, within);
  core->pool.trim(by.name, slot.others());
  wire_ptr made = co_await connect(*core, at, by, within);
  made->slot.emplace(std::move(slot));
  handshake.on(std::move(made));
  co_await handshake.send(head);
  co_await handshake.read_head(method::get);
  keep_cookies(*core, handshake);
  const std::string& where = handshake.where();
  if (const int status = handshake.status(); status != 101) {
    throw client_error(client_failure::not_upgraded, where,
                       "the server began no WebSocket, it answered " + std::to_string(status) +
                           " " + std::string(handshake.reason()),
                       fault::none, status);
  }
  if (!is_accepted(handshake.fields(), key)) {
    throw client_error(client_failure::bad_handshake, where,
                       "the server's 101 is no answer to a request for a WebSocket");
  }
  websocket_terms terms;
  terms.is_client = true;
  const std::string wrong = take_terms(handshake.fields(), options, terms);
  if (!wrong.empty())
    throw client_error(client_failure::bad_handshake, where,
                       "the server's answer does not fit our offer: " + wrong);
  wire_ptr wire = handshake.take_wire();
  std::string begun(wire->input());
  wire->release_buffer();
  co_return std::make_unique<client_websocket>(std::move(wire), core->options, std::move(begun),
                                               options, std::move(terms));
}

}  // namespace

task<std::unique_ptr<websocket>> websocket_call::start(tasks::limits within) && {
  return open(std::move(by_), std::move(asked_), std::move(options_), std::move(within));
}

}  // namespace troupe::http
