#include "http/behind_proxy/reports/forwarded.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "http/behind_proxy/address.hpp"

namespace troupe::http {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Whether the quote at `at` is a character of a quoted string: an odd number of \ is before it.
bool is_escaped(std::string_view text, std::size_t at) noexcept {
  std::size_t count = 0;
  while (count < at && text[at - count - 1] == '\\') ++count;
  return count % 2 == 1;
}

// The last separator outside of quotes; npos if there is none.
std::size_t last_outside(std::string_view text, char separator) noexcept {
  bool in_quotes = false;
  for (std::size_t at = text.size(); at-- > 0;) {
    if (text[at] == '"' && !is_escaped(text, at)) in_quotes = !in_quotes;
    if (text[at] == separator && !in_quotes) return at;
  }
  return std::string_view::npos;
}

// "[2001:db8::1]", "[2001:db8::1]:80".
std::optional<endpoint> bracketed(std::string_view text) noexcept {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  std::optional<std::uint16_t> port = 0;
  if (close + 1 < text.size()) {
    if (text[close + 1] != ':') return std::nullopt;
    port = port_of(text.substr(close + 2));
  }
  return port ? v6_of(text.substr(1, close - 1), *port) : std::nullopt;
}

// "192.0.2.1", "192.0.2.1:80".
std::optional<endpoint> dotted(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return v4_of(text);
  const std::optional<std::uint16_t> port = port_of(text.substr(colon + 1));
  return port ? v4_of(text.substr(0, colon), *port) : std::nullopt;
}

}  // namespace

std::string_view take_last(std::string_view& list, bool has_quotes) noexcept {
  const std::size_t comma = has_quotes ? last_outside(list, ',') : list.rfind(',');
  const std::string_view last = comma == std::string_view::npos ? list : list.substr(comma + 1);
  list = comma == std::string_view::npos ? std::string_view() : list.substr(0, comma);
  return trimmed(last);
}

std::optional<endpoint> address_of_entry(std::string_view entry) noexcept {
  if (entry.starts_with('[')) return bracketed(entry);
  if (const std::optional<endpoint> plain = v6_of(entry)) return plain;
  return dotted(entry);
}

std::optional<endpoint> address_of_element(std::string_view element) noexcept {
  std::optional<endpoint> found;
  bool has_one = false;
  while (!element.empty()) {
    const std::size_t semicolon = last_outside(element, ';');
    const std::string_view pair =
        trimmed(semicolon == std::string_view::npos ? element : element.substr(semicolon + 1));
    element =
        semicolon == std::string_view::npos ? std::string_view() : element.substr(0, semicolon);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !same_word(pair.substr(0, equals), "for")) continue;
    if (std::exchange(has_one, true)) return std::nullopt;
    std::string_view node = pair.substr(equals + 1);
    const bool is_quoted = node.size() >= 2 && node.front() == '"' && node.back() == '"';
    if (is_quoted) node = node.substr(1, node.size() - 2);
    // Only in quotes may it have the characters of IPv6 and of ports.
    if (is_quoted && node.starts_with('[')) {
      found = bracketed(node);
    } else {
      found = is_quoted ? dotted(node) : v4_of(node);
    }
  }
  return found;
}

std::optional<endpoint> client_behind(std::optional<endpoint> peer, http::fields all,
                                      forwarded_field source,
                                      std::span<const network> trusted) noexcept {
  const bool is_forwarded = source == forwarded_field::forwarded;
  const std::string_view name = is_forwarded ? "Forwarded" : "X-Forwarded-For";
  if (!contains(trusted, peer ? &*peer : nullptr)) return peer;
  for (std::size_t at = all.size(); at-- > 0;) {
    if (!same_word(all[at].name, name)) continue;
    for (std::string_view left = all[at].value; !left.empty();) {
      const std::string_view last = take_last(left, is_forwarded);
      if (last.empty()) continue;  // a list may have empty elements
      const std::optional<endpoint> found =
          is_forwarded ? address_of_element(last) : address_of_entry(last);
      if (!found) return peer;
      peer = found;
      if (!contains(trusted, &*peer)) return peer;
    }
  }
  return peer;
}

}  // namespace troupe::http
