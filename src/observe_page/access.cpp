#include "observe_page/access.hpp"

#include <array>
#include <cstdint>

#include "observe_page/routes.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe::observe_page {
namespace {

bool is_loopback(const std::string& peer) {
  return peer.starts_with("127.") || peer.starts_with("[::1]:") || peer.starts_with("[::ffff:127.");
}

bool is_local_name(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  // "[::1]" has colons of its own.
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos)
    host = host.substr(0, colon);
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || (is_number && host.starts_with("127."));
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

bool is_local(const http::request& asked) {
  if (!asked.has_peer()) return true;
  return is_loopback(asked.peer().to_string()) && is_local_name(asked.host());
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

std::optional<http::response> refuse(const http::request& asked, const std::string& token) {
  if (is_local(asked)) return std::nullopt;
  if (token.empty())
    return refusal(403,
                   "this page is for the machine on which the program runs: set "
                   "observe_page_options::token for others\n");
  if (!asked.secure()) return refusal(403, "this page is sent to other machines by https alone\n");
  const std::optional<std::string> given = token_of(asked.field("Authorization"));
  if (given && is_same(token, *given)) return std::nullopt;
  return refusal(401, "the token is missing or wrong\n")
      .field("WWW-Authenticate", "Basic realm=\"troupe\"");
}

}  // namespace troupe::observe_page
