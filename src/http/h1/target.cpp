#include "http/h1/target.hpp"

#include <algorithm>

namespace troupe::http {
namespace {

constexpr bool is_digit(char one) noexcept { return one >= '0' && one <= '9'; }

void split_path(std::string_view target, message_head& head) noexcept {
  const std::size_t mark = target.find('?');
  head.path = target.substr(0, mark);
  head.query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

}  // namespace

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

}  // namespace troupe::http
