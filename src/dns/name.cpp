#include "dns/name.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "troupe/dns/error.hpp"

namespace troupe::dns {
namespace {

constexpr std::size_t name_bytes_max = 253, label_bytes_max = 63;
constexpr std::string_view localhost = "localhost";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool may_be_in_name(char c) noexcept {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_';
}

[[noreturn]] void bad(std::string_view host, const char* why) {
  throw resolve_error(resolve_failure::bad_name, std::string(host.substr(0, name_bytes_max)), why);
}

std::optional<endpoint> parse_v4(const std::string& text, std::uint16_t port) {
  endpoint at = endpoint::any(port);
  if (::inet_pton(AF_INET, text.c_str(), &reinterpret_cast<sockaddr_in*>(at.data())->sin_addr) != 1)
    return std::nullopt;
  return at;
}

std::optional<endpoint> parse_v6(std::string text, std::uint16_t port) {
  endpoint at = endpoint::any_v6(port);
  auto& address = *reinterpret_cast<sockaddr_in6*>(at.data());
  if (const std::size_t mark = text.find('%'); mark != std::string::npos) {
    address.sin6_scope_id = ::if_nametoindex(text.c_str() + mark + 1);
    if (address.sin6_scope_id == 0) return std::nullopt;
    text.resize(mark);
  }
  if (::inet_pton(AF_INET6, text.c_str(), &address.sin6_addr) != 1) return std::nullopt;
  return at;
}

// RFC 6761: this includes all names below localhost, whatever the servers answer for them.
bool is_localhost(std::string_view name) {
  if (name.size() < localhost.size()) return false;
  const std::string_view end = name.substr(name.size() - localhost.size());
  if (!std::equal(end.begin(), end.end(), localhost.begin(),
                  [](char a, char b) { return lower(a) == b; }))
    return false;
  return name.size() == localhost.size() || name[name.size() - localhost.size() - 1] == '.';
}

void check_name(std::string_view host, std::string_view name) {
  if (name.empty()) bad(host, "it is empty");
  if (name.size() > name_bytes_max) bad(host, "it is longer than 253 bytes");
  std::string_view label;
  for (std::size_t at = 0; at <= name.size(); at += label.size() + 1) {
    label = name.substr(at, name.find('.', at) - at);
    if (label.empty()) bad(host, "a part of it is empty");
    if (label.size() > label_bytes_max) bad(host, "a part of it is longer than 63 bytes");
    if (!std::all_of(label.begin(), label.end(), may_be_in_name)) {
      bad(host,
          "it has a character that no host's name has; names beyond ASCII are given in their xn-- "
          "form");
    }
  }
  // 127.1 and 1.2.3.4.5: programs disagree about their meaning, and no name ends in such a label.
  if (std::all_of(label.begin(), label.end(), is_digit))
    bad(host, "it is neither a name nor an address");
}

}  // namespace

std::optional<std::vector<endpoint>> known_address(std::string_view host, std::uint16_t port,
                                                   address_family family) {
  std::string_view name = host;
  if (name.find('\0') != std::string_view::npos) bad(host, "it has a zero byte");
  const bool bracketed = name.size() >= 2 && name.front() == '[' && name.back() == ']';
  if (bracketed) name = name.substr(1, name.size() - 2);
  std::optional<endpoint> literal;
  if (bracketed || name.find(':') != std::string_view::npos) {
    literal = parse_v6(std::string(name), port);
    if (!literal) bad(host, "it is not an IPv6 address");
  } else {
    literal = parse_v4(std::string(name), port);
  }
  if (literal) {
    const bool wanted =
        family == address_family::any || literal->is_v6() == (family == address_family::v6);
    if (!wanted)
      throw resolve_error(resolve_failure::no_data, std::string(host),
                          "it is an address of the other family");
    return std::vector<endpoint>{*literal};
  }
  if (name.ends_with('.')) name.remove_suffix(1);
  check_name(host, name);
  if (!is_localhost(name)) return std::nullopt;
  std::vector<endpoint> loopback;
  if (family != address_family::v4) loopback.push_back(endpoint::loopback_v6(port));
  if (family != address_family::v6) loopback.push_back(endpoint::loopback(port));
  return loopback;
}

}  // namespace troupe::dns
