#include "troupe/http/values/multipart.hpp"

#include <algorithm>
#include <utility>

#include "http/values/token.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/media_type.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::http {

namespace {

constexpr std::size_t boundary_bytes_max = 70;

[[noreturn]] void fail(std::string_view why) {
  throw status_error(400, "multipart/form-data: " + std::string(why));
}
[[noreturn]] void fail_large(const std::string& why) {
  throw status_error(413, "multipart/form-data: " + why);
}

// bchars of RFC 2046, 5.1.1.
bool is_boundary(std::string_view text) noexcept {
  const auto is_letter = [](char character) {
    return is_token_letter(character) ||
           std::string_view("()/:=?, ").find(character) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= boundary_bytes_max && text.back() != ' ' &&
         std::ranges::all_of(text, is_letter);
}

bool is_control(char character) noexcept {
  return static_cast<unsigned char>(character) < ' ' || character == 127;
}

// Clients of old send whole paths, and others lie.
std::string_view last_component(std::string_view path) noexcept {
  const std::size_t slash = path.find_last_of("/\\");
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return path == "." || path == ".." ? std::string_view() : path;
}

// As parameter_of_media, but a parameter may be there and empty, which a field without a name is.
bool has_parameter(std::string_view value, std::string_view name) noexcept {
  take_part(value, ';');
  while (!value.empty()) {
    const std::string_view parameter = take_part(value, ';');
    if (same_word(parameter.substr(0, parameter.find('=')), name)) return true;
  }
  return false;
}

}  // namespace

multipart_parser::multipart_parser(std::string_view boundary, const multipart_limits& limits)
    : limits_(limits) {
  if (!is_boundary(boundary)) fail("the boundary is missing or malformed");
  delimiter_.append("\r\n--").append(boundary);
}

multipart_parser::step multipart_parser::next(std::string_view input) {
  switch (state_) {
    case state::start: {
      // The first boundary needs no line end before it.
      const std::string_view first = std::string_view(delimiter_).substr(2);
      const std::size_t compared = std::min(input.size(), first.size());
      const bool fits = input.substr(0, compared) == first.substr(0, compared);
      if (fits && compared < first.size()) return {};
      state_ = fits ? state::behind_boundary : state::preamble;
      return fits ? step{event::need_more, first.size(), {}} : skip_preamble(input);
    }
    case state::preamble:
      return skip_preamble(input);
    case state::behind_boundary:
      return read_boundary(input);
    case state::head:
      return read_head(input);
    case state::content:
      return read_content(input);
    case state::end:
      return {event::end, input.size(), {}};
  }
  return {};
}

// Text before the first boundary, as some programs write it for people: nothing of it counts.
multipart_parser::step multipart_parser::skip_preamble(std::string_view input) {
  const std::size_t found = input.find(delimiter_);
  if (found != std::string_view::npos) {
    state_ = state::behind_boundary;
    return {event::need_more, found + delimiter_.size(), {}};
  }
  return {event::need_more, begin_of_delimiter(input), {}};
}

// Behind a boundary is "--" at the end, else spaces and a line end.
multipart_parser::step multipart_parser::read_boundary(std::string_view input) {
  if (input.size() < 2) return {};
  if (input.starts_with("--")) {
    state_ = state::end;
    return {event::end, input.size(), {}};
  }
  const std::size_t end = std::min(input.find_first_not_of(" \t"), input.size());
  if (end > limits_.head_bytes) fail("there are too many spaces behind a boundary");
  if (input.size() - end < 2) return {};
  if (input.substr(end, 2) != "\r\n") fail("there is something behind a boundary");
  if (++parts_ > limits_.parts)
    fail_large("there are more than " + std::to_string(limits_.parts) + " parts");
  part_ = {};
  has_disposition_ = false;
  state_ = state::head;
  return {event::need_more, end + 2, {}};
}

multipart_parser::step multipart_parser::read_head(std::string_view input) {
  const std::string_view seen = input.substr(0, limits_.head_bytes);
  // A head without a line has an empty line alone.
  const std::size_t end = seen.starts_with("\r\n") ? 0 : seen.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (input.size() >= limits_.head_bytes) {
      fail_large("the head of a part has more than " + std::to_string(limits_.head_bytes) +
                 " bytes");
    }
    return {};
  }
  for (std::string_view left = seen.substr(0, end); !left.empty();) {
    const std::size_t line = left.find("\r\n");
    take_line(left.substr(0, line));
    left.remove_prefix(line == std::string_view::npos ? left.size() : line + 2);
  }
  if (!has_disposition_) fail("a part has no Content-Disposition");
  state_ = state::content;
  return {event::part, end == 0 ? 2 : end + 4, {}};
}

void multipart_parser::take_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_token(name)) fail("a field of a part is malformed");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (std::ranges::any_of(
          value, [](char character) { return is_control(character) && character != '\t'; }))
    fail("a field of a part has a control byte");
  if (same_word(name, "Content-Disposition")) {
    if (std::exchange(has_disposition_, true)) fail("a part has two fields Content-Disposition");
    if (!same_word(type_of_media(value), "form-data") || !has_parameter(value, "name"))
      fail("a part has no name");
    part_.name = parameter_of_part(value, "name");
    part_.is_file = has_parameter(value, "filename");
    part_.file_name = last_component(parameter_of_part(value, "filename"));
  } else if (same_word(name, "Content-Type")) {
    part_.type = value;
  } else if (same_word(name, "Content-Transfer-Encoding")) {
    if (!same_word(value, "7bit") && !same_word(value, "8bit") && !same_word(value, "binary"))
      fail("a part has a Content-Transfer-Encoding, which RFC 7578 has no more");
  }
}

multipart_parser::step multipart_parser::read_content(std::string_view input) {
  // The line end before the boundary belongs to the boundary, so that a content that is empty
  // begins with it.
  const std::size_t found = input.find(delimiter_);
  if (found == 0) {
    state_ = state::behind_boundary;
    return {event::part_end, delimiter_.size(), {}};
  }
  const std::size_t bytes = found == std::string_view::npos ? begin_of_delimiter(input) : found;
  if (bytes == 0) return {};
  return {event::data, bytes, input.substr(0, bytes)};
}

// Where the beginning of a boundary may be at the end of an input without a whole one.
std::size_t multipart_parser::begin_of_delimiter(std::string_view input) const noexcept {
  std::size_t at = input.size() - std::min(input.size(), delimiter_.size() - 1);
  while (at < input.size() && !std::string_view(delimiter_).starts_with(input.substr(at))) ++at;
  return at;
}

void multipart_parser::check_end() const {
  if (state_ != state::end) fail("the body ends before its last boundary");
}

}  // namespace troupe::http
