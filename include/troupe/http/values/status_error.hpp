// status_error: an error that is answered with a status and a text for the client.
#pragma once

#include "troupe/base/language.hpp"

#include <string>
#include <string_view>

#include "troupe/base/error.hpp"

namespace troupe::http {

// A handler throws it to answer with an error: the client gets the status and `detail`, as text or
// as application/problem+json (error_page). It is no failure of the program, and the connection
// stays open. The typed values of a request throw it with 400 and the name of the value. Errors:
// the constructor throws usage_error for a status that is no error (below 400, above 599).
//
// Example:
//     try {
//       throw troupe::http::status_error(409, "the order was already sent");
//     } catch (const troupe::http::status_error& e) {
//       std::cerr << e.status() << ' ' << e.detail() << '\n';
//     }
class status_error : public error {
 public:
  status_error(int status, std::string detail);
  int status() const noexcept { return status_; }
  verdict judged() const noexcept override;
  // The text for the client; empty: only the status' phrase.
  std::string_view detail() const noexcept { return detail_; }

 private:
  int status_;
  std::string detail_;
};

}  // namespace troupe::http
