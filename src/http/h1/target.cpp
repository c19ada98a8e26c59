#include "http/h1/target.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text/digit.hpp"
#include "base/text/eight_letters.hpp"

namespace troupe::http {
namespace {

using base::is_digit;

// The characters of a host's name.
constexpr auto host_letters = [] {
  std::array<bool, 256> allowed{};
  for (char character = '0'; character <= '9'; ++character)
    allowed[static_cast<unsigned char>(character)] = true;
  for (char character = 'a'; character <= 'z'; ++character) {
    allowed[static_cast<unsigned char>(character)] = true;
    allowed[static_cast<unsigned char>(character - 'a' + 'A')] = true;
  }
  for (const char character : std::string_view("-._~%!$&'()*+,;="))
    allowed[static_cast<unsigned char>(character)] = true;
  return allowed;
}();

// Whether all characters are visible ones of ASCII, and none begins a fragment.
bool is_visible(std::string_view text) noexcept {
  const auto is_bad = [](std::uint64_t word) {
    return base::has_less(word, '!') || base::has_beyond_ascii(word) ||
           base::has_letter(word, '\x7f') || base::has_letter(word, '#');
  };
  for (; text.size() >= 8; text.remove_prefix(8)) {
    if (is_bad(base::load_eight(text.data()))) return false;
  }
  return std::none_of(text.begin(), text.end(), [](char character) {
    return character <= ' ' || character >= 127 || character == '#';
  });
}

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
    for (const char character : text.substr(1, close - 1)) {
      const char letter = static_cast<char>(character | 0x20);
      if (!is_digit(character) && !(letter >= 'a' && letter <= 'f') && character != ':' &&
          character != '.')
        return false;
    }
    port = text.substr(close + 1);
    if (!port.empty() && port.front() != ':') return false;
  } else {
    std::size_t end = 0;
    while (end < text.size() && host_letters[static_cast<unsigned char>(text[end])]) ++end;
    port = text.substr(end);
    if (!port.empty() && (end == 0 || port.front() != ':')) return false;
  }
  if (port.size() > 6) return false;
  return port.empty() || std::all_of(port.begin() + 1, port.end(), is_digit);
}

fault check_target(message_head& head) noexcept {
  std::string_view target = head.target;
  if (head.method == method::connect) return fault::unknown_method;
  if (!is_visible(target)) return fault::bad_target;
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
