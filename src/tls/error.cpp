#include "troupe/tls/error.hpp"

#include "tls/library.hpp"

namespace troupe {
namespace {

const char* what_to_do(tls_failure why) noexcept {
  switch (why) {
    case tls_failure::certificate:
      return "check the host's name and the clock, or name the certificate that has signed it "
             "(ca_file)";
    case tls_failure::refused_by_peer:
      return "see what the peer has to say about it";
    case tls_failure::protocol:
      return "check the port, and the versions that both allow";
    case tls_failure::truncated:
      return "take what came as incomplete";
    case tls_failure::plain_http:
      return "the client has to ask for https://";
  }
  return "";
}

}  // namespace

tls_error::tls_error(tls_failure why, const char* operation, const std::string& peer,
                     const std::string& detail, long verify_result)
    : error(std::string("troupe: TLS ") + operation + " (" + peer + "): " + detail + ": " +
            what_to_do(why)),
      reason_(why),
      verify_result_(verify_result) {}

// Where the bytes end early, it is as if the connection was reset.
verdict tls_error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::effect;
  using enum verdict::again;
  switch (reason_) {
    case tls_failure::certificate:
    case tls_failure::plain_http:
      return {peer, none, never};
    case tls_failure::truncated:
      return {peer, unknown, later};
    default:
      return {peer, unknown, never};
  }
}

namespace tls {

std::string take_reasons(const char* fallback) {
  std::string all;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    const std::string text = reason != nullptr ? reason : "error " + std::to_string(code);
    if (all.ends_with(text)) continue;
    if (!all.empty()) all += "; ";
    all += text;
  }
  return all.empty() ? fallback : all;
}

}  // namespace tls

}  // namespace troupe
