#include "http/client/proxy_table.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "http/base64.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/client_error.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/request.hpp"

namespace troupe::http {

namespace {

constexpr std::size_t proxy_bytes_max = 8'192, none_bytes_max = 65'536;

// The text of a proxy may have a password in it: errors do not show it.
[[noreturn]] void refuse(const char* which, const std::string& why) {
  throw option_error("troupe: http::proxy_settings::" + std::string(which) + ": " + why);
}

std::string authorization_of(std::string_view pair, const char* which) {
  const std::size_t colon = pair.find(':');
  std::string user, password;
  const bool good =
      decode_percent(pair.substr(0, colon), user, false) &&
      (colon == std::string_view::npos || decode_percent(pair.substr(colon + 1), password, false));
  const auto is_control = [](char character) {
    return static_cast<unsigned char>(character) < ' ' || character == 0x7F;
  };
  const std::string both = user + ":" + password;
  if (!good || user.contains(':') || std::ranges::any_of(both, is_control))
    refuse(which, "the user or the password is malformed: encode its special letters with %");
  return "Basic " + in_base64(both);
}

std::optional<proxy_server> read_proxy(std::string_view text, const char* which) {
  if (text.empty()) return std::nullopt;
  if (text.size() > proxy_bytes_max) refuse(which, "it is longer than 8192 bytes");
  const std::size_t colon = text.find("://");
  if (colon != std::string_view::npos) {
    if (!same_word(text.substr(0, colon), "http"))
      refuse(which, "only proxies of the scheme http are supported");
    text.remove_prefix(colon + 3);
  }
  text = text.substr(0, text.find('/'));
  std::string authorization;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    authorization = authorization_of(text.substr(0, at), which);
    text.remove_prefix(at + 1);
  }
  try {
    return proxy_server{url::parse("http://" + std::string(text)), std::move(authorization)};
  } catch (const client_error&) {
    refuse(which, "it is not http://host:port");
  }
}

std::optional<numeric_host> read_address(std::string_view text) {
  numeric_host host;
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string copy(text);
  host.size = copy.contains(':') ? 16 : 4;
  const int family = host.size == 16 ? AF_INET6 : AF_INET;
  if (::inet_pton(family, copy.c_str(), host.bytes.data()) != 1) return std::nullopt;
  return host;
}

bool has_prefix(const numeric_host& host, const numeric_host& net, std::size_t bits) noexcept {
  if (host.size != net.size) return false;
  const std::size_t whole = bits / 8, rest = bits % 8;
  if (std::memcmp(host.bytes.data(), net.bytes.data(), whole) != 0) return false;
  return rest == 0 || ((host.bytes[whole] ^ net.bytes[whole]) >> (8 - rest)) == 0;
}

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number value = 0;
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string environment(const char* lower, const char* upper) {
  const char* text = std::getenv(lower);
  if (text == nullptr && upper != nullptr) text = std::getenv(upper);
  return text == nullptr ? "" : text;
}

}  // namespace

proxy_settings proxy_settings::from_environment() {
  proxy_settings settings;
  settings.http = environment("http_proxy", nullptr);
  settings.https = environment("https_proxy", "HTTPS_PROXY");
  settings.all = environment("all_proxy", "ALL_PROXY");
  settings.none = environment("no_proxy", "NO_PROXY");
  return settings;
}

proxy_table::proxy_table(const proxy_settings& given)
    : http_(read_proxy(given.http, "http")),
      https_(read_proxy(given.https, "https")),
      all_(read_proxy(given.all, "all")) {
  if (given.none.size() > none_bytes_max) refuse("none", "it is longer than 65536 bytes");
  for (std::string_view left = given.none; !left.empty();) {
    const std::size_t end = std::min(left.find_first_of(", \t"), left.size());
    if (end > 0) add_exception(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
}

void proxy_table::add_exception(std::string_view text) {
  const std::string_view whole = text;
  const auto bad = [whole] {
    refuse("none", "'" + std::string(whole) + "' is no host or network");
  };
  if (text == "*") {
    all_direct_ = true;
    return;
  }
  exception added;
  std::string_view bits;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    bits = text.substr(slash + 1);
    text = text.substr(0, slash);
  } else if (const std::size_t colon = text.rfind(':');
             colon != std::string_view::npos &&
             (text.find(':') == colon || text[colon - 1] == ']')) {
    const auto port = read_number<std::uint16_t>(text.substr(colon + 1));
    if (!port || *port == 0) bad();
    added.port = *port;
    text = text.substr(0, colon);
  }
  if (const auto address = read_address(text)) {
    added.address = *address;
    const auto count =
        bits.data() == nullptr ? std::optional(address->size * 8) : read_number<std::size_t>(bits);
    if (!count || *count > address->size * 8) bad();
    added.bits = *count;
  } else {
    if (bits.data() != nullptr) bad();
    if (text.starts_with("*")) text.remove_prefix(1);
    if (text.starts_with('.')) text.remove_prefix(1);
    if (text.ends_with('.')) text.remove_suffix(1);
    if (text.empty()) bad();
    try {
      added.name = url::parse("http://" + std::string(text)).host();
    } catch (const client_error&) {
      bad();
    }
  }
  direct_.push_back(std::move(added));
}

bool proxy_table::matches(const exception& rule, const url& target) {
  if (rule.port != 0 && rule.port != target.port()) return false;
  std::string_view host = target.host();
  if (rule.name.empty()) {
    const auto address = read_address(host);
    return address && has_prefix(*address, rule.address, rule.bits);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  return host.ends_with(rule.name) &&
         (host.size() == rule.name.size() || host[host.size() - rule.name.size() - 1] == '.');
}

const proxy_server* proxy_table::of(const url& target) const {
  const auto& own = target.secure() ? https_ : http_;
  const auto& used = own ? own : all_;
  if (!used || all_direct_) return nullptr;
  const bool direct =
      std::ranges::any_of(direct_, [&](const exception& rule) { return matches(rule, target); });
  return direct ? nullptr : &*used;
}

}  // namespace troupe::http
