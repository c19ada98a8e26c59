// cookie: a value that a response asks a client to keep.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/base/time_span.hpp"

namespace troupe::http {

// Whether a client sends a cookie with requests that another site has caused. `lax`: only when the
// user follows a link.
enum class same_site : std::uint8_t { strict, lax, none };

// A cookie, for response::cookie(). Default: Secure, HttpOnly, SameSite=Lax, Path=/, until the
// client ends its session.
//
// Errors: usage_error, from the function that is given a bad part: for a name that is no token, for
// a value with bytes that no cookie may have (RFC 6265: white space, '"', ',', ';', '\' and bytes
// beyond ASCII; encode such a value first), for a name and a value of more than 4,096 bytes
// together, which clients drop, for a path or a domain with a ';' or a control byte. From text():
// for a cookie that clients refuse: SameSite=None without Secure, "__Secure-" without Secure,
// "__Host-" without Secure, with a domain or with another path than "/".
//
// Example:
//     const auto kept = troupe::http::cookie("session", "4f2a").max_age(std::chrono::hours(1));
//     std::cout << kept.text() << '\n';
//     auto answer = troupe::http::response::text("welcome");
//     answer.cookie(kept);
class cookie {
 public:
  static constexpr std::size_t bytes_max = 4'096;

  cookie(std::string_view name, std::string_view value);
  // Asks the client to forget the cookie of that name, whose path and domain must be the same.
  static cookie removal(std::string_view name);

  // How long the client keeps it, in whole seconds; 0 or less: the client forgets it now.
  cookie& max_age(time_span now) & noexcept;
  cookie&& max_age(time_span now) && noexcept { return std::move(max_age(now)); }
  // The time of expiry, for clients without support of Max-Age, which takes precedence.
  cookie& expires(wall_time now) & noexcept;
  cookie&& expires(wall_time now) && noexcept { return std::move(expires(now)); }
  // The paths below which the client sends it; "": those below the request's own.
  cookie& path(std::string_view now) &;
  cookie&& path(std::string_view now) && { return std::move(path(now)); }
  // The domain to whose subdomains the client also sends it; "" (default): only to the host.
  cookie& domain(std::string_view now) &;
  cookie&& domain(std::string_view now) && { return std::move(domain(now)); }
  // Whether the client sends it only by HTTPS.
  cookie& secure(bool now) & noexcept;
  cookie&& secure(bool now) && noexcept { return std::move(secure(now)); }
  // Whether scripts of the page cannot read it.
  cookie& http_only(bool now) & noexcept;
  cookie&& http_only(bool now) && noexcept { return std::move(http_only(now)); }
  cookie& site(same_site now) & noexcept;
  cookie&& site(same_site now) && noexcept { return std::move(site(now)); }

  // The value of the field Set-Cookie.
  std::string text() const;

 private:
  void check_prefix() const;
  std::string name_, value_, path_ = "/", domain_;
  std::optional<std::chrono::seconds> max_age_;
  std::optional<std::chrono::system_clock::time_point> expires_;
  bool secure_ = true, http_only_ = true;
  same_site site_ = same_site::lax;
};

}  // namespace troupe::http
