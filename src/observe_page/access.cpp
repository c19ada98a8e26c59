#include "observe_page/access.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "http/behind_proxy/address.hpp"
#include "observe_page/routes.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe::observe_page {
namespace {

bool is_loopback(const std::string& peer) {
  return peer.starts_with("127.") || peer.starts_with("[::1]:") || peer.starts_with("[::ffff:127.");
}

std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  // "[::1]" has colons of its own.
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos)
    host = host.substr(0, colon);
  return host;
}

char small(char one) noexcept {
  return one >= 'A' && one <= 'Z' ? static_cast<char>(one - 'A' + 'a') : one;
}
bool is_same_name(std::string_view one, std::string_view other) noexcept {
  return std::ranges::equal(one, other, {}, small, small);
}

// Rejected: any address. A page cannot give itself an address that is not its own, but behind a
// proxy of this machine that passes on Host, readers of elsewhere would count as local ones.
bool is_local_name(std::string_view host, const std::vector<std::string>& names) {
  host = without_port(host);
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  if (is_same_name(host, "localhost") || host == "[::1]" || (is_number && host.starts_with("127.")))
    return true;
  return std::ranges::any_of(names, [&](const auto& name) { return is_same_name(name, host); });
}

// "example.org:443" of "https://example.org:443", without the port if it is the scheme's own.
std::string_view authority_of(std::string_view origin) {
  const std::size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return {};
  return origin.substr(scheme_end + 3);
}
std::string_view without_default_port(std::string_view authority) {
  for (const std::string_view port : {":80", ":443"}) {
    if (authority.ends_with(port)) authority.remove_suffix(port.size());
  }
  return authority;
}

// Scheme and the rest of the field; the scheme's letters may be large.
bool has_scheme(std::string_view& field, std::string_view scheme) {
  if (field.size() <= scheme.size() || field[scheme.size()] != ' ') return false;
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    if ((field[i] | 0x20) != scheme[i]) return false;
  }
  field.remove_prefix(field.find_first_not_of(' ', scheme.size()) == std::string_view::npos
                          ? field.size()
                          : field.find_first_not_of(' ', scheme.size()));
  return true;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t word = 0;
  unsigned bits = 0;
  for (const char one : text) {
    const std::size_t digit = digits.find(one);
    if (digit == std::string_view::npos) return std::nullopt;
    word = word << 6 | static_cast<std::uint32_t>(digit);
    if ((bits += 6) < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 0xff);
  }
  return bytes;
}

}  // namespace

bool is_local(const http::request& asked, const std::vector<std::string>& names) {
  if (!asked.has_peer()) return true;
  return is_loopback(asked.peer().to_string()) && is_local_name(asked.host(), names);
}

// A proxy may have taken TLS off: the scheme is not compared.
bool is_of_other_site(const request_site& from) {
  if (is_same_name(from.fetch_site, "cross-site")) return true;
  // Another port or a sibling's name. A person may follow a link from there.
  if (is_same_name(from.fetch_site, "same-site") && !is_same_name(from.fetch_mode, "navigate"))
    return true;
  if (from.origin.empty()) return false;
  const std::string_view origin = without_default_port(authority_of(from.origin));
  return origin.empty() || !is_same_name(origin, without_default_port(from.host));
}

// A link that a person has followed, as from the page of another node of a cluster. Only the path
// of the page itself ends with '/': the page shows no data before its own script asks for it.
bool is_followed_link(const http::request& asked) {
  return asked.path().ends_with('/') && asked.fields().count("Origin") == 0 &&
         asked.fields().count("Sec-Fetch-Site") == 1 &&
         asked.field("Sec-Fetch-Mode") == "navigate" &&
         asked.field("Sec-Fetch-Dest") == "document" && asked.field("Sec-Fetch-User") == "?1";
}

std::optional<http::response> refuse_other_site(const http::request& asked) {
  if (is_followed_link(asked)) return std::nullopt;
  const request_site from{asked.field("Sec-Fetch-Site"), asked.field("Sec-Fetch-Mode"),
                          asked.field("Origin"), asked.host()};
  if (asked.fields().count("Origin") <= 1 && asked.fields().count("Sec-Fetch-Site") <= 1 &&
      !is_of_other_site(from))
    return std::nullopt;
  return refusal(403,
                 "a page of another site asks for this one: open it by its own address instead\n");
}

bool is_same(std::string_view secret, std::string_view given) noexcept {
  std::size_t differs = secret.size() ^ given.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    differs |= static_cast<unsigned char>(other ^ given[i]);
  }
  return differs == 0;
}

std::optional<std::string> token_of(std::string_view authorization) {
  if (has_scheme(authorization, "bearer")) return std::string(authorization);
  if (!has_scheme(authorization, "basic")) return std::nullopt;
  const std::optional<std::string> decoded = from_base64(authorization);
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return decoded->substr(colon + 1);
}

std::optional<http::response> access::refuse(const http::request& asked) {
  if (auto refused = refuse_other_site(asked)) return refused;
  if (is_local(asked, hosts_)) return std::nullopt;
  if (token_.empty())
    return refusal(403,
                   "this page is for the machine on which the program runs, by the name localhost: "
                   "set observe_page_options::token for others, or ::hosts for other names\n");
  if (!asked.secure()) return refusal(403, "this page is sent to other machines by https alone\n");
  const std::optional<std::string> given = token_of(asked.field("Authorization"));
  const auto now = token_limit::clock::now();
  const std::string client = http::client_key(asked.client().value_or(asked.peer()));
  if (const auto left = wrong_.blocked_for(client, now); left.count() > 0)
    return refusal(429, "too many wrong tokens came from this address: try again later\n")
        .field("Retry-After", std::to_string(left.count()));
  if (given && is_same(token_, *given)) return std::nullopt;
  // A browser sends no token at first.
  if (given) wrong_.count(client, now);
  return refusal(401, "the token is missing or wrong\n")
      .field("WWW-Authenticate", "Basic realm=\"troupe\"");
}

}  // namespace troupe::observe_page
