#include "troupe/http/writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "http/fields/field_line.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

task<> body_writer::write(std::string_view bytes) {
  if (left_) {
    if (bytes.size() > *left_)
      throw usage_error(
          "troupe: http::body_writer::write: the answer has more bytes than its length says, by " +
          std::to_string(bytes.size() - *left_) +
          ": give response::stream() the right length, or none");
    *left_ -= bytes.size();
  }
  if (bytes.empty() || silent_) co_return;  // an empty chunk would end the body
  if (!chunked_) {
    co_await over_.send_owned(std::string(bytes));
    co_return;
  }
  std::array<char, 18> size;
  char* const end = std::to_chars(size.data(), size.data() + 16, bytes.size(), 16).ptr;
  end[0] = '\r';
  end[1] = '\n';
  const std::string_view line(size.data(), static_cast<std::size_t>(end + 2 - size.data()));
  std::string chunk;
  chunk.reserve(line.size() + bytes.size() + 2);
  chunk.append(line).append(bytes).append("\r\n");
  co_await over_.send_owned(std::move(chunk));
}

void body_writer::check_length() const {
  if (!is_short()) return;
  throw usage_error("troupe: http::response::stream: the function has returned " +
                    std::to_string(*left_) +
                    " bytes before the length of its answer: give the right length, or none");
}

task<> body_writer::finish() {
  if (!chunked_ || silent_) co_return;
  const std::string end = "0\r\n" + trailer_ + "\r\n";
  co_await over_.send(end);
}

bool body_writer::may_be_trailer(std::string_view name) noexcept {
  constexpr std::string_view refused[] = {"Authorization",
                                          "Cache-Control",
                                          "Connection",
                                          "Content-Encoding",
                                          "Content-Length",
                                          "Content-Range",
                                          "Content-Type",
                                          "Cookie",
                                          "Date",
                                          "Expect",
                                          "Expires",
                                          "Host",
                                          "Keep-Alive",
                                          "Location",
                                          "Max-Forwards",
                                          "Pragma",
                                          "Proxy-Connection",
                                          "Range",
                                          "Retry-After",
                                          "Set-Cookie",
                                          "TE",
                                          "Trailer",
                                          "Transfer-Encoding",
                                          "Upgrade",
                                          "Vary",
                                          "WWW-Authenticate"};
  return is_token(name) &&
         std::ranges::none_of(refused, [&](auto banned) { return same_word(banned, name); });
}

void add_trailer_line(std::string& to, std::string_view name, std::string_view value,
                      const char* caller) {
  const std::string begin = std::string("troupe: http::") + caller + "::trailer: ";
  if (!body_writer::may_be_trailer(name))
    throw usage_error(begin + "a field '" + std::string(name) +
                      "' cannot be behind a body: add it to the head");
  append_field(to, name, value, caller);
}

void body_writer::trailer(std::string_view name, std::string_view value) {
  add_trailer_line(trailer_, name, value, "body_writer");
}

namespace {

// Adds each line of `text`, with `name` before it. Lines may end with CR, LF or CRLF.
void add_lines(std::string& lines, std::string_view name, std::string_view text) {
  for (;;) {
    const std::size_t end = text.find_first_of("\r\n");
    lines.append(name).append(text.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + (text.substr(end, 2) == "\r\n" ? 2 : 1));
  }
}

void check_line(std::string_view text, const char* element) {
  if (text.find_first_of("\r\n\0", 0, 3) == std::string_view::npos) return;
  throw usage_error(std::string("troupe: http::event_writer: there is a line end in the ") +
                    element);
}

}  // namespace

task<> event_writer::send(event_message event) {
  check_line(event.event, "type");
  check_line(event.id, "id");
  std::string text;
  if (!event.event.empty()) text += "event: " + event.event + "\n";
  if (!event.id.empty()) text += "id: " + event.id + "\n";
  if (event.retry_ms > 0) text += "retry: " + std::to_string(event.retry_ms) + "\n";
  add_lines(text, "data: ", event.data);
  text += "\n";
  co_await body_.write(text);
}

task<> event_writer::comment(std::string text) {
  std::string lines;
  add_lines(lines, ": ", text);
  lines += "\n";
  co_await body_.write(lines);
}

}  // namespace troupe::http
