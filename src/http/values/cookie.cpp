#include "troupe/http/values/cookie.hpp"

#include <algorithm>

#include "http/h1/date.hpp"
#include "http/values/cookie_pairs.hpp"
#include "http/values/token.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

namespace {

[[noreturn]] void fail(std::string_view name, std::string_view why) {
  throw usage_error("troupe: http::cookie: '" + std::string(name) + "' " + std::string(why));
}

// cookie-octet of RFC 6265, 4.1.1.
bool may_be_in_value(char character) noexcept {
  return character > ' ' && character < 127 && character != '"' && character != ',' &&
         character != ';' && character != '\\';
}

bool may_be_in_attribute(char character) noexcept {
  return character >= ' ' && character < 127 && character != ';';
}

}  // namespace

cookie_pair take_cookie_pair(std::string_view& left) noexcept {
  const std::size_t end = left.find(';');
  const std::string_view pair = left.substr(0, end);
  left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  const std::size_t equals = pair.find('=');
  if (equals == std::string_view::npos) return {"", trimmed(pair)};
  return {trimmed(pair.substr(0, equals)), trimmed(pair.substr(equals + 1))};
}

cookie::cookie(std::string_view name, std::string_view value) : name_(name), value_(value) {
  if (!is_token(name)) fail(name, "is not a valid cookie name");
  if (!std::ranges::all_of(value, may_be_in_value))
    fail(name, "has a value with a byte that no cookie may have: encode the value first");
  if (name.size() + value.size() > bytes_max)
    fail(name, "is longer than " + std::to_string(bytes_max) + " bytes, which clients drop");
}

cookie cookie::removal(std::string_view name) {
  return cookie(name, "")
      .max_age(std::chrono::seconds(0))
      .expires(std::chrono::system_clock::time_point());
}

cookie& cookie::max_age(time_span now) & noexcept {
  using std::chrono::seconds;
  max_age_ = std::max(std::chrono::ceil<seconds>(now), seconds(0));
  return *this;
}

cookie& cookie::expires(wall_time now) & noexcept {
  expires_ = now;
  return *this;
}

cookie& cookie::path(std::string_view now) & {
  if ((!now.empty() && now.front() != '/') || !std::ranges::all_of(now, may_be_in_attribute))
    fail(name_, "has a path that does not begin with '/', or has a ';' or a control byte");
  path_ = now;
  return *this;
}

cookie& cookie::domain(std::string_view now) & {
  const bool is_bad = std::ranges::any_of(now, [](char character) {
    return !may_be_in_attribute(character) || character == ' ' || character == ',' ||
           character == '/' || character == ':';
  });
  if (is_bad) fail(name_, "has a domain that is not a valid host name");
  domain_ = now;
  return *this;
}

cookie& cookie::secure(bool now) & noexcept {
  secure_ = now;
  return *this;
}

cookie& cookie::http_only(bool now) & noexcept {
  http_only_ = now;
  return *this;
}

cookie& cookie::site(same_site now) & noexcept {
  site_ = now;
  return *this;
}

void cookie::check_prefix() const {
  const auto begins = [&](std::string_view prefix) {
    return same_word(std::string_view(name_).substr(0, prefix.size()), prefix);
  };
  const bool is_host = begins("__Host-");
  if (secure_) {
    if (is_host && (!domain_.empty() || path_ != "/"))
      fail(name_, "must have the path \"/\" and no domain: clients refuse __Host- otherwise");
    return;
  }
  if (is_host || begins("__Secure-"))
    fail(name_, "must be secure: clients refuse __Host- and __Secure- otherwise");
  if (site_ == same_site::none)
    fail(name_, "must be secure: clients refuse SameSite=None otherwise");
}

std::string cookie::text() const {
  check_prefix();
  std::string text;
  text.append(name_).append("=").append(value_);
  if (!path_.empty()) text.append("; Path=").append(path_);
  if (!domain_.empty()) text.append("; Domain=").append(domain_);
  if (max_age_) text.append("; Max-Age=").append(std::to_string(max_age_->count()));
  if (expires_) {
    const auto date = write_date(std::chrono::system_clock::to_time_t(*expires_));
    text.append("; Expires=").append(date.data(), date.size());
  }
  if (secure_) text.append("; Secure");
  if (http_only_) text.append("; HttpOnly");
  text.append(site_ == same_site::strict ? "; SameSite=Strict"
              : site_ == same_site::lax  ? "; SameSite=Lax"
                                         : "; SameSite=None");
  return text;
}

}  // namespace troupe::http
