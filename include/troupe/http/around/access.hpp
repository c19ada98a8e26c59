// access: functions in front of handlers that control access: basic and bearer credentials, fields
// that restrict pages in browsers, and requests from pages of other origins.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/http/around/around.hpp"

namespace troupe::http {

// Lets only requests with Basic credentials pass that `check` accepts; others are answered 401.
// Compare secrets with same_secret().
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("secret"); });
//     routes.around(troupe::http::basic_auth("stock", [](auto user, auto password) {
//       return user == "ada" && troupe::http::same_secret(password, "12345");
//     }));
class basic_auth {
 public:
  using function = std::function<bool(std::string_view user, std::string_view password)>;
  // Throws usage_error for a realm with a quote, a backslash or a control byte.
  basic_auth(std::string_view realm, function check);
  std::optional<response> operator()(const request& asked) const;

 private:
  std::string challenge_;
  function check_;
};

// The same with a token ("Authorization: Bearer …").
class bearer_auth {
 public:
  using function = std::function<bool(std::string_view token)>;
  bearer_auth(std::string_view realm, function check);
  std::optional<response> operator()(const request& asked) const;

 private:
  std::string challenge_;
  function check_;
};

// basic_auth with a check that waits, as for a database. An exception from the check counts as the
// handler's.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("secret"); });
//     routes.around(troupe::http::waiting_basic_auth(
//         "stock", [](std::string user, std::string password) -> troupe::task<bool> {
//           co_await troupe::sleep_for(std::chrono::milliseconds(1));
//           co_return user == "ada" && troupe::http::same_secret(password, "12345");
//         }));
class waiting_basic_auth {
 public:
  using function = std::function<task<bool>(std::string user, std::string password)>;
  waiting_basic_auth(std::string_view realm, function check);
  task<response> operator()(request& asked, next_handler next) const;

 private:
  std::string challenge_;
  function check_;
};

// bearer_auth with a check that waits.
class waiting_bearer_auth {
 public:
  using function = std::function<task<bool>(std::string token)>;
  waiting_bearer_auth(std::string_view realm, function check);
  task<response> operator()(request& asked, next_handler next) const;

 private:
  std::string challenge_;
  function check_;
};

// Compares in a time that depends only on the length of `given`.
bool same_secret(std::string_view given, std::string_view secret) noexcept;

// Adds fields that restrict the use of an answer by browsers: X-Content-Type-Options: nosniff,
// X-Frame-Options: DENY, Referrer-Policy: strict-origin-when-cross-origin, and the ones below. A
// field that the handler has set is not changed.
struct security_fields {
  // Default "default-src 'self'"; "": no such field.
  std::string content_security_policy = "default-src 'self'";
  // Strict-Transport-Security in seconds. Default 0: no such field.
  time_span hsts{};
  void operator()(const request& asked, response& answer) const;
};

// Requests that scripts of other origins make (CORS). A request of an origin that is not listed is
// answered without the fields, and its script cannot read the answer. routes.around(cors) also
// answers OPTIONS of its routes. Put it in front of functions that demand credentials (call
// routes.around for it after basic_auth's): browsers send OPTIONS without them.
struct cors {
  static constexpr bool answers_options = true;
  // "https://example.org"; "*" for all origins, which is not possible with allow_credentials.
  std::vector<std::string> origins;
  // Default: the methods that browsers send without OPTIONS.
  std::string methods = "GET, HEAD, POST";
  // The fields that a script may send, beyond those allowed in each request: "Content-Type,
  // X-Token".
  std::string fields = {};
  // The fields of the answer that a script may see.
  std::string exposed = {};
  bool allow_credentials = false;
  // For how long a browser may keep the answer to OPTIONS.
  time_span max_age = std::chrono::seconds(600);
  void operator()(const request& asked, response& answer) const;
};

}  // namespace troupe::http
