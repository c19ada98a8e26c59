// cookie_jar: keeps the cookies of a client, and selects the cookies of each request.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/http/url.hpp"
#include "troupe/http/values/cookie.hpp"

namespace troupe::http {

class jar_state;

// The limits of a cookie_jar. A limit of 0 is an option_error.
struct cookie_limits {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  cookie_limits() {}

  // Maximum number of cookies, in total and of one domain. Default 3,000 and 180. At a limit, the
  // jar removes the expired cookies. If that is not enough, it removes the cookie that was sent or
  // set the longest time ago; in a full domain, cookies that are not Secure come first.
  std::size_t cookies = 3'000, per_domain = 180;
  // Maximum bytes of a name and its value. Default 4,096; a longer cookie is not kept.
  std::size_t cookie_bytes = cookie::bytes_max;
  // Maximum bytes of an attribute's value (Path, Domain). Default 1,024; a longer attribute is
  // ignored.
  std::size_t attribute_bytes = 1'024;
  // Maximum bytes of the field Cookie of one request. Default 8,192. Cookies that do not fit are
  // not sent: those with the shortest path and, of these, those that were set last.
  std::size_t field_bytes = 8'192;
  // The maximum time for which a cookie is kept, even if the server requests more. Default 400
  // days.
  time_span age = std::chrono::hours(24 * 400);
  // Returns whether anyone may own names below a domain ("co.uk"): a cookie for such a domain would
  // go to strangers, and is refused. The domain is in lower case. Default: only domains of one
  // label ("com") are. Give a function that uses the list of publicsuffix.org if a client asks
  // servers that do not trust each other. Thread: any; it is called under a mutex.
  std::function<bool(std::string_view domain)> is_public_suffix;
};

// A cookie that a jar keeps.
struct kept_cookie {
  std::string name, value, domain, path;
  bool host_only = true;  // it is sent only to this host, and not to hosts below the domain
  bool secure = false, http_only = false;
  // SameSite, if the server has set it.
  std::optional<same_site> site;
  // Empty: until the end of the session.
  std::optional<wall_time> expires;
};

// The origin of a request, for SameSite.
enum class request_site : std::uint8_t {
  same,   // the program itself asks, or a redirect within the site
  cross,  // a redirect of another site: no `strict` cookies; `lax` ones only for safe methods
};

// Cookies by RFC 6265bis, for a client without pages and scripts. Set it as
// client_options::cookies: the client then stores the cookies of each answer, of redirects and
// errors as well, and sends them with the requests to which they belong. Copies refer to the same
// jar, and several clients may share one.
//
// It keeps cookies for the host itself, or for a domain above it that is no public suffix and no
// address. A Secure cookie is taken from https only, is sent by https only, and no answer without
// TLS replaces it. "__Secure-" and "__Host-" are honoured, in any case of letters.
// HttpOnly is kept and saved. The client has no page; its site is the site that was asked first:
// see request_site. Two hosts are of one site if they are equal or one is below the other, with the
// same scheme.
//
// Thread: any. Cost: some microseconds for each request; a mutex is held meanwhile. Limits:
// cookie_limits. Errors: option_error for limits.
//
// Example:
//     troupe::http::cookie_jar jar;
//     const auto shop = troupe::http::url::parse("https://shop.example.org/cart/");
//     jar.store(shop, "id=7; Domain=example.org; Path=/; Secure");
//     std::cout << jar.field_for(troupe::http::url::parse("https://www.example.org/")) << '\n';
//     troupe::http::cookie_jar later;
//     later.load(jar.save(true));
class cookie_jar {
 public:
  using time_point = wall_time;

  explicit cookie_jar(cookie_limits limits = {});

  // Stores the cookie of one field Set-Cookie, which an answer from that URL had. Returns false if
  // it is refused. A cookie that has expired removes the one that is kept.
  bool store(const url& from, std::string_view set_cookie, time_point at = now()) const;
  // The value of the field Cookie for a request; "" if there is no cookie for it.
  std::string field_for(const url& to, request_site site = request_site::same,
                        std::string_view method = "GET", time_point at = now()) const;

  // All cookies that have not expired, in the order in which they were set.
  std::vector<kept_cookie> all(time_point at = now()) const;
  std::size_t size() const;
  void clear() const;
  // Removes the cookies that a server set without a time, as a browser does when it exits.
  void end_session() const;

  // The cookies as text, in the format of Netscape's cookies.txt, which curl and wget read and
  // write: a line for each cookie. SameSite is a comment in front of the line. The text contains
  // secrets: write it to a file that no other user may read.
  std::string save(bool with_session_cookies = false, time_point at = now()) const;
  // Adds the cookies of such a text; returns how many were added. Expired cookies, and cookies that
  // no server could have set, are omitted. Throws option_error for a line that is no cookie;
  // nothing is added then.
  std::size_t load(std::string_view text, time_point at = now()) const;

 private:
  static time_point now() { return std::chrono::system_clock::now(); }
  std::shared_ptr<jar_state> state_;
};

// Whether both belong to one site, by the rules of cookie_jar.
bool same_site_as(const url& a, const url& b) noexcept;

}  // namespace troupe::http
