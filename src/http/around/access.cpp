#include "troupe/http/around/access.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "http/fields/field_line.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/error_page.hpp"

namespace troupe::http {

namespace {

int value_of(char letter) noexcept {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

// Base64 with its padding, as RFC 7617 has it; nothing for other texts.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string decoded;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const int value = value_of(letter);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    decoded += static_cast<char>(bits >> count & 0xFF);
  }
  return decoded;
}

std::string challenge(std::string_view scheme, std::string_view realm) {
  const auto is_bad = [](char character) {
    const auto code = static_cast<unsigned char>(character);
    return code < ' ' || code >= 127 || character == '"' || character == '\\';
  };
  if (std::ranges::any_of(realm, is_bad))
    throw usage_error(
        "troupe: http: the realm has a quote, a backslash, or a character beyond ASCII; remove "
        "that character");
  return std::string(scheme) + " realm=\"" + std::string(realm) + "\"";
}

// The text behind the scheme in the field Authorization; nothing for another scheme or two fields.
std::optional<std::string_view> credentials(const request& asked, std::string_view scheme) {
  if (asked.fields().count("Authorization") != 1) return std::nullopt;
  const std::string_view value = asked.field("Authorization");
  const std::size_t space = value.find(' ');
  if (space == std::string_view::npos || !same_word(value.substr(0, space), scheme))
    return std::nullopt;
  return trimmed(value.substr(space));
}

response refuse(const request& asked, std::string_view challenge) {
  return error_page(asked, 401).field("WWW-Authenticate", challenge);
}

constexpr std::string_view invalid_token = ", error=\"invalid_token\"";

std::string basic_challenge(std::string_view realm) {
  return challenge("Basic", realm) + ", charset=\"UTF-8\"";
}

struct basic_pair {
  std::string user, password;
};

// Nothing if there are none, or malformed ones.
std::optional<basic_pair> user_and_password(const request& asked) {
  const auto given = credentials(asked, "Basic");
  const std::optional<std::string> pair = given ? decode_base64(*given) : std::nullopt;
  const std::size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return basic_pair{pair->substr(0, colon), pair->substr(colon + 1)};
}

}  // namespace

bool same_secret(std::string_view given, std::string_view secret) noexcept {
  unsigned differs = given.size() != secret.size() || secret.empty() ? 1 : 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    differs |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return differs == 0;
}

basic_auth::basic_auth(std::string_view realm, function check)
    : challenge_(basic_challenge(realm)), check_(std::move(check)) {}

std::optional<response> basic_auth::operator()(const request& asked) const {
  const auto given = user_and_password(asked);
  if (given && check_(given->user, given->password)) return std::nullopt;
  return refuse(asked, challenge_);
}

waiting_basic_auth::waiting_basic_auth(std::string_view realm, function check)
    : challenge_(basic_challenge(realm)), check_(std::move(check)) {}

task<response> waiting_basic_auth::operator()(request& asked, next_handler next) const {
  auto given = user_and_password(asked);
  bool passes = false;
  if (given) {
    task<bool> checking = check_(std::move(given->user), std::move(given->password));
    passes = co_await std::move(checking);
  }
  if (!passes) co_return refuse(asked, challenge_);
  co_return co_await next(asked);
}

bearer_auth::bearer_auth(std::string_view realm, function check)
    : challenge_(challenge("Bearer", realm)), check_(std::move(check)) {}

std::optional<response> bearer_auth::operator()(const request& asked) const {
  const auto given = credentials(asked, "Bearer");
  if (!given || given->empty()) return refuse(asked, challenge_);
  if (check_(*given)) return std::nullopt;
  return refuse(asked, challenge_ + std::string(invalid_token));
}

waiting_bearer_auth::waiting_bearer_auth(std::string_view realm, function check)
    : challenge_(challenge("Bearer", realm)), check_(std::move(check)) {}

task<response> waiting_bearer_auth::operator()(request& asked, next_handler next) const {
  const auto given = credentials(asked, "Bearer");
  if (!given || given->empty()) co_return refuse(asked, challenge_);
  task<bool> checking = check_(std::string(*given));
  const bool passes = co_await std::move(checking);
  if (!passes) co_return refuse(asked, challenge_ + std::string(invalid_token));
  co_return co_await next(asked);
}

void security_fields::operator()(const request&, response& answer) const {
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty() && !answer.has_field(name)) answer.field(name, value);
  };
  add("X-Content-Type-Options", "nosniff");
  add("X-Frame-Options", "DENY");
  add("Referrer-Policy", "strict-origin-when-cross-origin");
  add("Content-Security-Policy", content_security_policy);
  if (hsts.count() > 0) add("Strict-Transport-Security", "max-age=" + seconds_text(hsts));
}

void cors::operator()(const request& asked, response& answer) const {
  const bool all = std::ranges::find(origins, "*") != origins.end();
  if (all && allow_credentials)
    throw usage_error("troupe: http::cors: credentials need origins that are listed, not \"*\"");
  if (!all) answer.field("Vary", "Origin");
  const std::string_view origin = asked.field("Origin");
  if (origin.empty() || (!all && std::ranges::find(origins, origin) == origins.end())) return;
  answer.field("Access-Control-Allow-Origin", all ? std::string_view("*") : origin);
  if (allow_credentials) answer.field("Access-Control-Allow-Credentials", "true");
  if (asked.method() != method::options || asked.field("Access-Control-Request-Method").empty()) {
    if (!exposed.empty()) answer.field("Access-Control-Expose-Headers", exposed);
    return;
  }
  answer.field("Access-Control-Allow-Methods", methods);
  if (!fields.empty()) answer.field("Access-Control-Allow-Headers", fields);
  answer.field("Access-Control-Max-Age", seconds_text(max_age));
}

}  // namespace troupe::http
