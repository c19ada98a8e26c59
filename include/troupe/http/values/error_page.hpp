// error_page: the answer for an error, as text or as application/problem+json.
#pragma once

#include "troupe/base/language.hpp"

#include <string_view>

#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {

// An answer with the status of an error, and with `detail` for the client. Its body is a line of
// text, or a problem of RFC 9457 for a client that prefers application/problem+json or
// application/json by its field Accept: {"type":"about:blank","title":"Not Found","status":404,
// "detail":"…"}. The server answers all errors of a request in this form, also response(404).
// Accept with neither of them gets text: an error is worth more than its form. Bytes of `detail`
// that are not UTF-8 become U+FFFD.
//
// Example (declarations):
//     troupe::http::response find(const troupe::http::request& asked, int id) {
//       if (id != 7)
//         return troupe::http::error_page(asked, 404, "there is no order " + std::to_string(id));
//       return troupe::http::response::text("a book");
//     }
response error_page(const request& asked, int status, std::string_view detail = {});

}  // namespace troupe::http
