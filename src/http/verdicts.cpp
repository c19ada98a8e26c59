// The verdicts of http: whose fault each error is (docs/protocols/verdicts.md).
#include "troupe/base/error.hpp"
#include "troupe/http/client_error.hpp"
#include "troupe/http/fault.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::http {
namespace {

using enum verdict::party;
using enum verdict::effect;
using enum verdict::again;

// The verdict on an answer with this status, which is no success.
verdict of_answer(int status) noexcept {
  switch (status) {
    case 408:
    case 429:
      return {caller, none, later};
    case 502:
    case 503:
    case 504:
      return {upstream, none, later};
    default:
      return {status >= 400 && status < 500 ? caller : upstream, none, never};
  }
}

}  // namespace

verdict refused::judged() const noexcept {
  switch (why_) {
    case fault::over_budget:
      return {us, none, later};
    case fault::too_slow:
    case fault::truncated:
      return {peer, unknown, never};
    default:
      return {peer, none, never};
  }
}

verdict status_error::judged() const noexcept {
  if (status_ == 429) return {caller, none, later};
  if (status_ < 500) return {caller, none, never};
  return {us, unknown, status_ == 503 ? later : never};
}

verdict client_error::judged() const noexcept {
  switch (reason_) {
    case client_failure::bad_url:
    case client_failure::bad_handshake:
      return {caller, none, never};
    case client_failure::too_many_redirects:
    case client_failure::bad_redirect:
    case client_failure::insecure_redirect:
    case client_failure::bad_response:
      return {upstream, unknown, never};
    case client_failure::body_too_large:
    case client_failure::decoded_too_large:
      return {us, unknown, never};
    case client_failure::too_much_kept:
      return {us, unknown, later};
    case client_failure::too_slow:
    case client_failure::truncated:
    case client_failure::closed:
    case client_failure::reset:
      return {upstream, unknown, later};
    case client_failure::proxy_unreachable:
    case client_failure::refused:
      return {upstream, none, later};
    case client_failure::not_upgraded:
      // A server without a WebSocket may answer any status; these mean that it is unavailable.
      if (status_ < 502 || status_ > 504) return {caller, none, never};
      return of_answer(status_);
    case client_failure::proxy_refused:
    case client_failure::not_downloaded:
      return of_answer(status_);
    case client_failure::part_in_use:
      return {us, none, later};
  }
  return {};
}

}  // namespace troupe::http
