#include "http/client/cookies/jar_state.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <mutex>

#include "base/invariant.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

namespace {

cookie_limits checked(cookie_limits given) {
  if (given.cookies == 0 || given.per_domain == 0 || given.cookie_bytes == 0 ||
      given.attribute_bytes == 0 || given.field_bytes == 0 || given.age.count() <= 0)
    throw option_error("troupe: http::cookie_limits: each limit must be at least 1");
  return given;
}

// RFC 6265bis, 5.1.4: the directory of the target.
std::string_view default_path(std::string_view target) noexcept {
  target = target.substr(0, target.find('?'));
  const std::size_t last = target.rfind('/');
  return last == 0 || last == std::string_view::npos ? "/" : target.substr(0, last);
}

bool is_within_path(std::string_view target, std::string_view path) noexcept {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with(path)) return false;
  return target.size() == path.size() || path.ends_with('/') || target[path.size()] == '/';
}

bool is_safe(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

// Whether the cookie keeps the promise of its prefix. Servers that do not look at the letters' case
// could be fooled by "__host-": it is therefore also a prefix, and so is the value of a cookie that
// has no name.
bool keeps_prefix(const kept_cookie& cookie) noexcept {
  const std::string_view shown = cookie.name.empty() ? cookie.value : cookie.name;
  const auto begins = [&](std::string_view prefix) {
    return same_word(shown.substr(0, prefix.size()), prefix);
  };
  if (!begins("__Secure-") && !begins("__Host-")) return true;
  if (cookie.name.empty() || !cookie.secure) return false;
  return begins("__Secure-") || (cookie.host_only && cookie.path == "/");
}

bool has_control(std::string_view text) noexcept {
  return std::ranges::any_of(text, [](char character) {
    return static_cast<unsigned char>(character) < ' ' || character == 0x7F;
  });
}

// A cookie that read_set_cookie() would not have given; a saved text may have been edited.
bool is_well_formed(const kept_cookie& cookie) noexcept {
  constexpr auto npos = std::string::npos;
  return !(cookie.name.empty() && cookie.value.empty()) && !cookie.domain.empty() &&
         cookie.path.starts_with('/') && cookie.name.find_first_of("=;") == npos &&
         cookie.value.find(';') == npos && cookie.path.find(';') == npos &&
         !has_control(cookie.name) && !has_control(cookie.value) && !has_control(cookie.path) &&
         !has_control(cookie.domain) && keeps_prefix(cookie) &&
         (cookie.secure || cookie.site != same_site::none);
}

bool has_expired(const kept_cookie& cookie, jar_state::time_point at) noexcept {
  return cookie.expires && *cookie.expires <= at;
}

// Whether one replaces the other, in the list of their domain (J1).
bool is_same(const kept_cookie& old, const kept_cookie& cookie) noexcept {
  return old.name == cookie.name && old.path == cookie.path && old.host_only == cookie.host_only;
}

// Takes the first label off "a.b.c"; "" behind the last one.
std::string_view parent_of(std::string_view domain) noexcept {
  const std::size_t dot = domain.find('.');
  return dot == std::string_view::npos ? "" : domain.substr(dot + 1);
}

}  // namespace

bool is_address(std::string_view host) noexcept {
  if (host.starts_with('[')) return true;
  // Some systems also take "127.1" and "0x7f000001" for addresses; no name ends in such a label.
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return !last.empty() && last.front() >= '0' && last.front() <= '9' &&
         std::ranges::all_of(last, [](char character) {
           return (character >= '0' && character <= '9') ||
                  (character >= 'a' && character <= 'f') || character == 'x';
         });
}

bool is_within_domain(std::string_view host, std::string_view domain) noexcept {
  if (host == domain) return true;
  return host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.' && !is_address(host);
}

jar_state::jar_state(cookie_limits given) : limits(checked(std::move(given))) {}

// Clears the domain if it is the host itself and nothing may lie below it.
bool jar_state::may_own(const std::string& host, std::string& domain) const {
  if (domain.empty()) return true;
  const bool is_suffix = !domain.contains('.') || domain.ends_with('.') ||
                         (limits.is_public_suffix && limits.is_public_suffix(domain));
  if (is_suffix || is_address(host)) {
    if (domain != host) return false;
    domain.clear();
    return true;
  }
  return is_within_domain(host, domain);
}

// An answer without TLS could otherwise put a cookie in front of a Secure one, or replace it.
bool jar_state::hides_secure(const std::string& name, const std::string& domain,
                             std::string_view path) {
  for (const auto& [other, list] : by_domain_) {
    if (!is_within_domain(other, domain) && !is_within_domain(domain, other)) continue;
    for (const entry& cookie : list)
      if (cookie.secure && cookie.name == name && is_within_path(path, cookie.path)) return true;
  }
  return false;
}

bool jar_state::store(const url& from, const set_cookie& got, time_point at) {
  kept_cookie cookie;
  std::string domain = got.domain;
  if (got.name.size() + got.value.size() > limits.cookie_bytes) return false;
  const std::lock_guard lock(mutex_);
  if (!may_own(from.host(), domain)) return false;
  cookie.host_only = domain.empty();
  cookie.domain = domain.empty() ? from.host() : domain;
  cookie.name = got.name;
  cookie.value = got.value;
  cookie.path = got.has_path ? std::string_view(got.path) : default_path(from.target());
  cookie.secure = got.secure;
  cookie.http_only = got.http_only;
  cookie.site = got.site;
  cookie.expires = got.expires;
  if (!from.secure() && (cookie.secure || hides_secure(cookie.name, cookie.domain, cookie.path)))
    return false;
  return is_well_formed(cookie) && put(std::move(cookie), at);
}

bool jar_state::add(kept_cookie cookie, time_point at) {
  if (cookie.name.size() + cookie.value.size() > limits.cookie_bytes) return false;
  if (!is_well_formed(cookie) || has_expired(cookie, at)) return false;
  const std::lock_guard lock(mutex_);
  std::string domain = cookie.host_only ? "" : cookie.domain;
  // The host could be any below the domain.
  if (!cookie.host_only && (!may_own("x." + cookie.domain, domain) || is_address(cookie.domain)))
    return false;
  return put(std::move(cookie), at);
}

std::size_t jar_state::count_same(const entries& list, const entry& cookie) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      list, [&cookie](const entry& other) { return is_same(other, cookie); }));
}

bool jar_state::put(kept_cookie&& cookie, time_point at) {
  const time_point latest(limits.age.after(at.time_since_epoch()));
  if (cookie.expires) cookie.expires = std::min<time_point>(*cookie.expires, latest);
  const auto list = by_domain_.find(cookie.domain);
  if (list != by_domain_.end()) {
    for (std::size_t i = 0; i < list->second.size(); ++i) {
      entry& old = list->second[i];
      if (!is_same(old, cookie)) continue;
      if (has_expired(cookie, at)) {
        erase(cookie.domain, i);
        return true;
      }
      static_cast<kept_cookie&>(old) = std::move(cookie);  // it keeps its order
      old.used = ++clock_;
      return true;
    }
  }
  if (has_expired(cookie, at)) return true;
  make_room(cookie.domain, at);
  entry added;
  static_cast<kept_cookie&>(added) = std::move(cookie);
  added.order = added.used = ++clock_;
  entries& list_of_domain = by_domain_[added.domain];
  list_of_domain.push_back(std::move(added));
  ++count_;
  TROUPE_INVARIANT(count_same(list_of_domain, list_of_domain.back()) == 1, "J1");
  TROUPE_INVARIANT(count_ <= limits.cookies && list_of_domain.size() <= limits.per_domain, "J2");
  return true;
}

// Leaves room for one more cookie of that domain (J2).
void jar_state::make_room(const std::string& domain, time_point at) {
  const auto is_full = [&] {
    const auto list = by_domain_.find(domain);
    return count_ >= limits.cookies ||
           (list != by_domain_.end() && list->second.size() >= limits.per_domain);
  };
  if (!is_full()) return;
  erase_if([at](const kept_cookie& cookie) { return has_expired(cookie, at); });
  if (const auto list = by_domain_.find(domain);
      list != by_domain_.end() && list->second.size() >= limits.per_domain) {
    const auto victim = std::ranges::min_element(list->second, {}, [](const entry& cookie) {
      return std::pair(cookie.secure, cookie.used);
    });
    erase(domain, static_cast<std::size_t>(victim - list->second.begin()));
  }
  if (count_ < limits.cookies) return;
  const std::string* oldest = nullptr;
  std::size_t index = 0;
  std::uint64_t used = UINT64_MAX;
  for (const auto& [name, list] : by_domain_) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].used >= used) continue;
      oldest = &name;
      index = i;
      used = list[i].used;
    }
  }
  erase(std::string(*oldest), index);
}

void jar_state::erase(const std::string& domain, std::size_t index) {
  const auto list = by_domain_.find(domain);
  list->second.erase(list->second.begin() + static_cast<std::ptrdiff_t>(index));
  --count_;
  if (list->second.empty()) by_domain_.erase(list);
}

template <class Drops>
void jar_state::erase_if(Drops drops) {
  for (auto list = by_domain_.begin(); list != by_domain_.end();) {
    count_ -= std::erase_if(list->second, drops);
    list = list->second.empty() ? by_domain_.erase(list) : std::next(list);
  }
}

std::string jar_state::field_for(const url& target, request_site site, std::string_view method,
                                 time_point at) {
  const auto goes = [&](const entry& cookie) {
    if (has_expired(cookie, at) || (cookie.secure && !target.secure())) return false;
    if (cookie.host_only && cookie.domain != target.host()) return false;
    if (!is_within_path(target.target(), cookie.path)) return false;
    if (site == request_site::same || !cookie.site || cookie.site == same_site::none) return true;
    return cookie.site == same_site::lax && is_safe(method);
  };
  std::vector<entry*> found;
  const std::lock_guard lock(mutex_);
  std::string_view domain = target.host();
  do {
    const auto list = by_domain_.find(domain);
    if (list != by_domain_.end()) {
      for (entry& cookie : list->second)
        if (goes(cookie)) found.push_back(&cookie);
    }
    domain = is_address(target.host()) ? "" : parent_of(domain);
  } while (!domain.empty());
  std::ranges::sort(found, [](const entry* a, const entry* b) {
    return a->path.size() != b->path.size() ? a->path.size() > b->path.size() : a->order < b->order;
  });
  std::string field;
  for (entry* const cookie : found) {
    const std::string pair =
        cookie->name.empty() ? cookie->value : cookie->name + "=" + cookie->value;
    if (field.size() + pair.size() + (field.empty() ? 0 : 2) > limits.field_bytes) break;
    field.append(field.empty() ? "" : "; ").append(pair);
    cookie->used = ++clock_;
  }
  return field;
}

std::vector<kept_cookie> jar_state::all(time_point at) {
  std::vector<entry> found;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [domain, list] : by_domain_)
      for (const entry& cookie : list)
        if (!has_expired(cookie, at)) found.push_back(cookie);
  }
  std::ranges::sort(found, {}, &entry::order);
  return {found.begin(), found.end()};
}

std::size_t jar_state::size() {
  const std::lock_guard lock(mutex_);
  return count_;
}

void jar_state::clear() {
  const std::lock_guard lock(mutex_);
  by_domain_.clear();
  count_ = 0;
}

void jar_state::end_session() {
  const std::lock_guard lock(mutex_);
  erase_if([](const kept_cookie& cookie) { return !cookie.expires; });
}

}  // namespace troupe::http
