#include "troupe/http/client_message.hpp"

#include <algorithm>
#include <charconv>

#include "http/client/exchange.hpp"
#include "http/fields/field_line.hpp"
#include "troupe/base/error.hpp"

namespace troupe::http {
namespace {

const char* what_to_do(client_failure why) noexcept {
  switch (why) {
    case client_failure::bad_url:
      return "correct it";
    case client_failure::too_many_redirects:
      return "check whether they form a loop, or allow more (client_options::redirects)";
    case client_failure::bad_redirect:
      return "ask for another URL, or set client_options::redirects to 0 and look at the answer";
    case client_failure::insecure_redirect:
      return "ask for the other URL yourself if you mean to";
    case client_failure::bad_response:
      return "the server has an error, or it speaks neither HTTP/1.1 nor HTTP/2";
    case client_failure::body_too_large:
      return "take it in pieces with read(), or allow more (client_options::body_bytes)";
    case client_failure::too_much_kept:
      return "read it sooner, read less at a time, or allow more (client_options::buffer_bytes)";
    case client_failure::decoded_too_large:
      return "it may be an attack; allow more if you trust the server "
             "(client_options::decoded_body_bytes)";
    case client_failure::too_slow:
      return "try again later, or allow less (client_options::body_rate)";
    case client_failure::truncated:
      return "take what came as incomplete; ask again for the whole or for the rest of it";
    case client_failure::closed:
      return "try again if asking twice does no harm";
    case client_failure::not_upgraded:
      return "ask for a URL at which there is a WebSocket, with the fields that the server wants";
    case client_failure::bad_handshake:
      return "offer what the server speaks (websocket_options), or the server is at fault";
    case client_failure::proxy_unreachable:
      return "correct client_options::proxies, or try again later";
    case client_failure::proxy_refused:
      return "give the user and the password that it wants (client_options::proxies), or ask "
             "directly";
    case client_failure::not_downloaded:
      return "ask for a URL at which there is a file, with the fields that the server wants";
    case client_failure::part_in_use:
      return "wait for the other download, or choose another path";
    case client_failure::refused:
      return "try again later";
    case client_failure::reset:
      return "try again if asking twice does no harm";
  }
  return "";
}

}  // namespace

client_error::client_error(client_failure reason, const std::string& url, std::string_view detail,
                           fault why, int status)
    : error("troupe: http: " + url + ": " + std::string(detail) + ": " + what_to_do(reason)),
      reason_(reason),
      why_(why),
      status_(status) {}

client_request::client_request(std::string method, std::string url)
    : method_(std::move(method)), url_(std::move(url)) {
  if (!is_token(method_))
    throw usage_error(
        "troupe: http::client_request: the name of the method is no token; use letters, such as "
        "PATCH");
  if (method_ == "CONNECT")
    throw usage_error(
        "troupe: http::client_request: CONNECT is the client's own: set client_options::proxies");
}

client_request& client_request::field(std::string_view name, std::string_view value) {
  for (const std::string_view own : {"Host", "Content-Length", "Transfer-Encoding", "Connection",
                                     "Upgrade", "TE", "Trailer", "Expect"}) {
    if (same_word(name, own))
      throw usage_error("troupe: http::client_request: the field " + std::string(own) +
                        " is the client's own");
  }
  append_field(fields_, name, value, "client_request");
  ranged_ = ranged_ || same_word(name, "Range");
  return *this;
}

void strip(std::string& fields, std::initializer_list<std::string_view> names) {
  std::string kept;
  for (std::string_view rest = fields; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    const std::string_view name = line.substr(0, line.find(':'));
    if (std::none_of(names.begin(), names.end(),
                     [&](std::string_view stripped) { return same_word(stripped, name); }))
      kept += line;
  }
  fields = std::move(kept);
}

void client_request::only_field(std::string_view name, std::string_view value) {
  check_field_value(name, value, "client_request");
  strip(fields_, {name});
  field(name, value);
}

namespace {

void check_may_have_body(const std::string& method) {
  if (method == "TRACE")
    throw usage_error(
        "troupe: http::client_request: a TRACE request must not have a body; leave it out");
}

}  // namespace

client_request& client_request::body(std::string bytes, std::string_view type) {
  check_may_have_body(method_);
  if (!type.empty()) only_field("Content-Type", type);
  body_ = std::move(bytes);
  upload_ = nullptr;
  has_body_ = true;
  return *this;
}

client_request& client_request::body(upload_function how, std::string_view type) {
  check_may_have_body(method_);
  if (!type.empty()) only_field("Content-Type", type);
  body_.clear();
  upload_ = std::move(how);
  has_body_ = true;
  return *this;
}

client_request& client_request::range(std::uint64_t first, std::optional<std::uint64_t> last) {
  if (last && *last < first)
    throw usage_error(
        "troupe: http::client_request: the range ends before it begins; give a last byte that is "
        "not before the first");
  only_field("Range", "bytes=" + std::to_string(first) + "-" + (last ? std::to_string(*last) : ""));
  return *this;
}

task<> upload::write(std::string_view bytes) {
  if (bytes.empty()) co_return;  // an empty chunk would end the body
  co_await over_.send_piece(bytes);
}

void upload::trailer(std::string_view name, std::string_view value) {
  add_trailer_line(trailer_, name, value, "upload");
}

int client_response::status() const noexcept { return exchange_->status(); }
std::string_view client_response::reason() const noexcept { return exchange_->reason(); }
http::fields client_response::fields() const noexcept { return exchange_->fields(); }
const std::string& client_response::url() const noexcept { return exchange_->where(); }
std::optional<std::uint64_t> client_response::length() const noexcept {
  return exchange_->length();
}
http::fields client_response::trailer() const noexcept { return exchange_->trailer(); }

std::optional<content_range> client_response::range() const noexcept {
  std::string_view text = field("Content-Range");
  if (text.size() < 6 || !same_word(text.substr(0, 6), "bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const auto take = [&text](std::uint64_t& to, std::string_view mark) {
    const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (bad != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (!text.starts_with(mark)) return false;
    text.remove_prefix(mark.size());
    return true;
  };
  content_range range;
  if (!take(range.first, "-") || !take(range.last, "/") || range.last < range.first)
    return std::nullopt;
  if (text == "*") return range;
  std::uint64_t all = 0;
  if (!take(all, "") || !text.empty() || all <= range.last) return std::nullopt;
  range.of = all;
  return range;
}

namespace {

// Each of these keeps the exchange alive, even when the response is destroyed.
task<std::string_view> read_piece(std::shared_ptr<exchange> from) {
  co_return co_await from->read();
}
task<std::string> read_rest(std::shared_ptr<exchange> from) { co_return co_await from->read_all(); }

}  // namespace

task<std::string_view> client_response::read() { return read_piece(exchange_); }
task<std::string> client_response::read_all() { return read_rest(exchange_); }

}  // namespace troupe::http
