#include "troupe/http/client/cookie_jar.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>

#include "http/client/cookies/jar_state.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

namespace {

constexpr std::string_view http_only_mark = "#HttpOnly_", site_mark = "#SameSite=";

std::string_view text_of(same_site site) noexcept {
  return site == same_site::strict ? "Strict" : site == same_site::lax ? "Lax" : "None";
}

[[noreturn]] void fail(std::size_t line) {
  throw option_error("troupe: http::cookie_jar::load: line " + std::to_string(line) +
                     " has not the seven columns of a cookie: domain, subdomains, path, secure, "
                     "time, name, value");
}

bool read_bool(std::string_view text, std::size_t line) {
  if (text == "TRUE") return true;
  if (text != "FALSE") fail(line);
  return false;
}

std::string_view take_column(std::string_view& left, std::size_t line) {
  const std::size_t end = left.find('\t');
  if (end == std::string_view::npos) fail(line);
  const std::string_view column = left.substr(0, end);
  left.remove_prefix(end + 1);
  return column;
}

kept_cookie read_line(std::string_view text, std::size_t line) {
  kept_cookie cookie;
  cookie.http_only = text.starts_with(http_only_mark);
  if (cookie.http_only) text.remove_prefix(http_only_mark.size());
  std::string_view domain = take_column(text, line);
  if (domain.starts_with('.')) domain.remove_prefix(1);
  cookie.domain = domain;
  cookie.host_only = !read_bool(take_column(text, line), line);
  cookie.path = take_column(text, line);
  cookie.secure = read_bool(take_column(text, line), line);
  const std::string_view time = take_column(text, line);
  std::int64_t seconds = 0;
  const auto [rest, bad] = std::from_chars(time.data(), time.data() + time.size(), seconds);
  if (bad != std::errc{} || rest != time.data() + time.size() || seconds < 0) fail(line);
  // The clock counts nanoseconds, which end in the year 2262.
  constexpr std::int64_t latest = 7'258'118'400;
  if (seconds != 0)
    cookie.expires = cookie_jar::time_point(std::chrono::seconds(std::min(seconds, latest)));
  cookie.name = take_column(text, line);
  if (text.contains('\t')) fail(line);
  cookie.value = text;
  return cookie;
}

std::vector<kept_cookie> read_lines(std::string_view text) {
  std::vector<kept_cookie> all;
  std::optional<same_site> site;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(site_mark)) {
      const std::string_view word = line.substr(site_mark.size());
      for (const same_site known : {same_site::strict, same_site::lax, same_site::none})
        if (word == text_of(known)) site = known;
      continue;
    }
    if (line.empty() || (line.starts_with('#') && !line.starts_with(http_only_mark))) continue;
    all.push_back(read_line(line, number));
    all.back().site = std::exchange(site, std::nullopt);
  }
  return all;
}

}  // namespace

bool same_site_as(const url& a, const url& b) noexcept {
  return a.secure() == b.secure() &&
         (is_within_domain(a.host(), b.host()) || is_within_domain(b.host(), a.host()));
}

cookie_jar::cookie_jar(cookie_limits limits)
    : state_(std::make_shared<jar_state>(std::move(limits))) {}

bool cookie_jar::store(const url& from, std::string_view set_cookie, time_point at) const {
  const auto got = read_set_cookie(set_cookie, at, state_->limits.attribute_bytes);
  return got && state_->store(from, *got, at);
}

std::string cookie_jar::field_for(const url& to, request_site site, std::string_view method,
                                  time_point at) const {
  return state_->field_for(to, site, method, at);
}

std::vector<kept_cookie> cookie_jar::all(time_point at) const { return state_->all(at); }
std::size_t cookie_jar::size() const { return state_->size(); }
void cookie_jar::clear() const { state_->clear(); }
void cookie_jar::end_session() const { state_->end_session(); }

std::string cookie_jar::save(bool with_session_cookies, time_point at) const {
  std::string text = "# Netscape HTTP Cookie File\n";
  for (const kept_cookie& cookie : state_->all(at)) {
    if (!cookie.expires && !with_session_cookies) continue;
    if (cookie.site) text.append(site_mark).append(text_of(*cookie.site)).append("\n");
    if (cookie.http_only) text += http_only_mark;
    if (!cookie.host_only) text += '.';
    text.append(cookie.domain)
        .append(cookie.host_only ? "\tFALSE\t" : "\tTRUE\t")
        .append(cookie.path);
    text.append(cookie.secure ? "\tTRUE\t" : "\tFALSE\t");
    const auto seconds =
        cookie.expires
            ? std::chrono::ceil<std::chrono::seconds>(*cookie.expires).time_since_epoch().count()
            : 0;
    text.append(std::to_string(seconds)).append("\t").append(cookie.name).append("\t");
    text.append(cookie.value).append("\n");
  }
  return text;
}

std::size_t cookie_jar::load(std::string_view text, time_point at) const {
  std::size_t added = 0;
  for (kept_cookie& cookie : read_lines(text))
    added += state_->add(std::move(cookie), at) ? 1u : 0u;
  return added;
}

}  // namespace troupe::http
