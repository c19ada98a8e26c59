#include "troupe/http/response.hpp"

#include <algorithm>
#include <utility>

#include "http/fields/field_line.hpp"
#include "http/routing/response_parts.hpp"
#include "http/websocket/handshake/websocket_terms.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/cookie.hpp"

namespace troupe::http {

void response::end_special::operator()(special* ended) const noexcept { delete ended; }

response::special& response::extra() {
  if (special_ == nullptr) special_.reset(new special);
  return *special_;
}

response response::redirect(std::string_view to, int status) {
  response answer(status);
  answer.field("Location", to);
  return answer;
}

response response::stream(content_type type, stream_function how) {
  response answer;
  answer.type_ = std::move(type);
  answer.extra().answer_kind = special::kind::streamed;
  answer.extra().streamed.stream = std::move(how);
  return answer;
}

response response::stream(content_type type, std::uint64_t bytes, stream_function how) {
  response answer = stream(std::move(type), std::move(how));
  answer.extra().streamed.length = bytes;
  return answer;
}

response response::events(event_function how) {
  response answer;
  answer.type_ = "text/event-stream";
  answer.fields_ = "Cache-Control: no-cache\r\n";
  answer.extra().answer_kind = special::kind::streamed;
  answer.extra().streamed.events = std::move(how);
  return answer;
}

response response::websocket(websocket_function talk) {
  return websocket(std::move(talk), websocket_options());
}

response response::websocket(websocket_function talk, const websocket_options& options) {
  check_options(options);
  response answer(101);
  answer.extra().answer_kind = special::kind::websocket;
  answer.extra().talk = std::move(talk);
  answer.extra().socket = options;
  return answer;
}

response response::file(const troupe::file& from, std::uint64_t offset, std::uint64_t bytes,
                        content_type type) {
  if (!from.is_open())
    throw usage_error(
        "troupe: http::response::file: the file is not open; open it before you make the answer");
  response answer;
  answer.type_ = std::move(type);
  answer.extra().file = {from.share(), offset, bytes};
  return answer;
}

response& response::field(std::string_view name, std::string_view value) & {
  for (const std::string_view own : {"Content-Length", "Transfer-Encoding", "Connection", "Date"}) {
    if (same_word(name, own)) {
      throw usage_error("troupe: http::response: the field '" + std::string(name) +
                        "' is the server's own");
    }
  }
  // Reserves at once the space for most answers: growing step by step would copy the fields several
  // times.
  if (fields_.capacity() - fields_.size() < name.size() + value.size() + 4)
    fields_.reserve(fields_.size() + name.size() + value.size() + 160);
  append_field(fields_, name, value, "response");
  return *this;
}

std::string_view response::field(std::string_view name) const noexcept {
  for (std::string_view left = fields_; !left.empty();) {
    const std::string_view line = left.substr(0, left.find("\r\n"));
    if (same_word(take_field_name(left), name)) return line.substr(name.size() + 2);
  }
  return {};
}

bool response::special::is_event_stream(const response& answer) noexcept {
  constexpr std::string_view events = "text/event-stream";
  const std::string_view type =
      answer.type_.empty() ? answer.field("Content-Type") : answer.type_.view();
  return same_word(type.substr(0, type.find(';')), events);
}

response& response::cookie(const http::cookie& set) & { return field("Set-Cookie", set.text()); }

}  // namespace troupe::http
