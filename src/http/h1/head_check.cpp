#include "http/h1/head_check.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::http {

namespace {

constexpr bool is_white(char one) noexcept { return one == ' ' || one == '\t'; }
constexpr bool is_digit(char one) noexcept { return one >= '0' && one <= '9'; }

bool is_line_end(std::string_view section, std::size_t at) noexcept {
  return at + 2 <= section.size() && section[at] == '\r' && section[at + 1] == '\n';
}

// Reads "HTTP/1.0" or "HTTP/1.1" at `at`. Returns 0 or 1, or -1 for anything else.
int minor_version_at(std::string_view section, std::size_t at) noexcept {
  if (section.substr(at, 7) != "HTTP/1." || at + 7 >= section.size()) return -1;
  const char minor = section[at + 7];
  return minor == '0' || minor == '1' ? minor - '0' : -1;
}

// Skips one empty line: old clients send one behind a body.
std::size_t first_line_of(std::string_view section) noexcept {
  return is_line_end(section, 0) ? 2 : 0;
}

// True for a name, an IPv4 address, or an IPv6 address in brackets, each with a port or without.
bool is_host(std::string_view text) noexcept {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos || close < 3) return false;
    for (const char one : text.substr(1, close - 1)) {
      const char letter = static_cast<char>(one | 0x20);
      if (!is_digit(one) && !(letter >= 'a' && letter <= 'f') && one != ':' && one != '.')
        return false;
    }
    port = text.substr(close + 1);
    if (!port.empty() && port.front() != ':') return false;
  } else {
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos) port = text.substr(colon);
    for (const char one : text.substr(0, colon)) {
      const char letter = static_cast<char>(one | 0x20);
      if (!is_digit(one) && !(letter >= 'a' && letter <= 'z') &&
          std::string_view("-._~%!$&'()*+,;=").find(one) == std::string_view::npos) {
        return false;
      }
    }
    if (colon == 0) return false;
  }
  if (port.size() > 6) return false;
  return port.empty() || std::all_of(port.begin() + 1, port.end(), is_digit);
}

void split_path(std::string_view target, message_head& head) noexcept {
  const std::size_t mark = target.find('?');
  head.path = target.substr(0, mark);
  head.query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

struct codings {
  int chunked = 0, others = 0;
  bool last_is_chunked = false, malformed = false;

  void add(std::string_view list) noexcept {
    for (;;) {
      const std::size_t comma = list.find(',');
      std::string_view one = list.substr(0, comma);
      while (!one.empty() && is_white(one.front())) one.remove_prefix(1);
      while (!one.empty() && is_white(one.back())) one.remove_suffix(1);
      malformed |= one.empty();
      last_is_chunked = same_word(one, "chunked");
      ++(last_is_chunked ? chunked : others);
      if (comma == std::string_view::npos) return;
      list.remove_prefix(comma + 1);
    }
  }
};

}  // namespace

start_line check_request_line(std::string_view section, std::string_view target,
                              message_head& to) noexcept {
  const std::size_t begin = first_line_of(section);
  if (section[begin] == '\r' || section[begin] == '\n') return {fault::bad_start_line};
  const std::size_t space = section.find(' ', begin);
  if (space == std::string_view::npos || target.empty() ||
      target.data() != section.data() + space + 1) {
    return {fault::bad_start_line};
  }
  to.method_name = section.substr(begin, space - begin);
  to.method = method_named(to.method_name);
  to.target = target;
  const std::size_t end = space + 1 + target.size();
  if (section[end] != ' ' || section.substr(end + 1, 5) != "HTTP/") return {fault::bad_start_line};
  to.minor_version = minor_version_at(section, end + 1);
  if (to.minor_version < 0) return {fault::bad_version};
  if (!is_line_end(section, end + 9)) return {fault::bad_line_end};
  return {fault::none, end + 11};
}

start_line check_status_line(std::string_view section, message_head& to) noexcept {
  const std::size_t begin = first_line_of(section);
  to.minor_version = minor_version_at(section, begin);
  if (to.minor_version < 0) return {fault::bad_version};
  const std::string_view code = section.substr(begin + 8, 4);
  if (code.size() != 4 || code[0] != ' ' || !std::all_of(code.begin() + 1, code.end(), is_digit)) {
    return {fault::bad_start_line};
  }
  to.status = (code[1] - '0') * 100 + (code[2] - '0') * 10 + (code[3] - '0');
  if (to.status < 100) return {fault::bad_start_line};
  const std::size_t after = begin + 12, end = section.find('\r', after);
  if (!is_line_end(section, end)) return {fault::bad_line_end};
  to.reason = section.substr(after, end - after);
  if (!to.reason.empty()) {
    if (to.reason.front() != ' ') return {fault::bad_start_line};
    to.reason.remove_prefix(1);
  }
  return {fault::none, end + 2};
}

fault check_lines(std::string_view section, std::size_t at,
                  std::vector<fields::position>& positions) noexcept {
  for (fields::position& one : positions) {
    if (one.name != at) return is_white(section[at]) ? fault::folded_field : fault::bad_field;
    const std::size_t colon = at + one.name_bytes;
    if (one.name_bytes == 0 || colon >= section.size() || section[colon] != ':')
      return fault::bad_field;
    std::size_t value = colon + 1;
    while (value < section.size() && is_white(section[value])) ++value;
    if (one.value_bytes == 0) {
      one.value = static_cast<std::uint32_t>(value);
    } else if (one.value != value) {
      return fault::folded_field;
    }
    const std::size_t end = std::size_t{one.value} + one.value_bytes;
    if (!is_line_end(section, end)) return fault::bad_line_end;
    while (one.value_bytes != 0 && is_white(section[one.value + one.value_bytes - 1]))
      --one.value_bytes;
    at = end + 2;
  }
  if (at < section.size() && is_white(section[at])) return fault::folded_field;
  return is_line_end(section, at) && at + 2 == section.size() ? fault::none : fault::bad_field;
}

fault check_target(message_head& head) noexcept {
  std::string_view target = head.target;
  if (head.method == method::connect) return fault::unknown_method;
  if (std::any_of(target.begin(), target.end(),
                  [](char one) { return one <= ' ' || one >= 127 || one == '#'; })) {
    return fault::bad_target;
  }
  if (target == "*") {
    if (head.method != method::options) return fault::bad_target;
    head.path = target;
    return fault::none;
  }
  if (!target.starts_with('/')) {
    // The absolute form, which clients send to proxies. Its host counts, and not the one in the
    // field.
    const std::size_t colon = target.find("://");
    if (colon == std::string_view::npos) return fault::bad_target;
    const std::string_view scheme = target.substr(0, colon);
    if (!same_word(scheme, "http") && !same_word(scheme, "https")) return fault::bad_target;
    target.remove_prefix(colon + 3);
    const std::size_t slash = target.find_first_of("/?");
    head.host = target.substr(0, slash);
    if (head.host.empty() || !is_host(head.host)) return fault::bad_target;
    target = slash == std::string_view::npos ? std::string_view() : target.substr(slash);
    split_path(target, head);
    if (head.path.empty()) head.path = head.method == method::options && target.empty() ? "*" : "/";
    return fault::none;
  }
  split_path(target, head);
  return fault::none;
}

fault check_meaning(side reads, message_head& head) noexcept {
  codings coded;
  int hosts = 0, lengths = 0;
  bool close = false, keep = false, upgrade_field = false, upgrade_word = false;
  std::string_view host;
  for (const field one : head.fields) {
    switch (one.name.size()) {
      case 4:
        if (same_word(one.name, "host")) {
          ++hosts;
          host = one.value;
        }
        break;
      case 6:
        if (reads == side::requests && same_word(one.name, "expect")) {
          if (!same_word(one.value, "100-continue")) return fault::bad_expectation;
          head.expects_continue = head.minor_version == 1;
        }
        break;
      case 7:
        if (same_word(one.name, "upgrade")) upgrade_field = true;
        break;
      case 10:
        if (same_word(one.name, "connection")) {
          close |= lists_word(one.value, "close");
          keep |= lists_word(one.value, "keep-alive");
          upgrade_word |= lists_word(one.value, "upgrade");
        }
        break;
      case 11:
        if (reads == side::requests && same_word(one.name, "traceparent")) head.in_trace = true;
        break;
      case 14:
        if (same_word(one.name, "content-length")) {
          ++lengths;
          const char* const end = one.value.data() + one.value.size();
          const auto [rest, bad] = std::from_chars(one.value.data(), end, head.length);
          if (bad != std::errc{} || rest != end) return fault::bad_length;
        }
        break;
      case 17:
        if (same_word(one.name, "transfer-encoding")) coded.add(one.value);
        break;
      default:
        break;
    }
  }
  if (lengths > 1) return fault::bad_length;
  head.has_length = lengths == 1;
  if (coded.chunked + coded.others > 0) {
    if (head.has_length) return fault::length_and_coding;
    if (coded.malformed || !coded.last_is_chunked || coded.chunked != 1 || head.minor_version == 0)
      return fault::bad_coding;
    if (coded.others > 0) return fault::unknown_coding;
    head.chunked = true;
  }
  if (reads == side::requests) {
    if (hosts > 1) return fault::several_hosts;
    if (hosts == 0 && head.minor_version == 1) return fault::no_host;
    if (!host.empty() && !is_host(host)) return fault::bad_host;
    if (head.host.empty()) head.host = host;
  }
  head.keep_alive = !close && (head.minor_version == 1 || keep);
  head.wants_upgrade = upgrade_field && upgrade_word && head.minor_version == 1;
  return fault::none;
}

fault check_trailer_fields(const fields& trailer) noexcept {
  for (const field one : trailer) {
    for (const std::string_view name :
         {"content-length", "transfer-encoding", "host", "connection", "trailer", "upgrade"}) {
      if (same_word(one.name, name)) return fault::bad_trailer;
    }
  }
  return fault::none;
}

}  // namespace troupe::http
