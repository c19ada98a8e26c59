// error: a failure of NATS, or of the connection to it.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe::nats {

// The kind of a failure, by which a program decides how to react; it does not parse the text.
enum class failure : std::uint8_t {
  unreachable,    // no server could be reached, or none accepted the client
  denied,         // the user is not known to the server, or may not do that
  lost,           // the connection to the server ended before the answer
  no_responders,  // no subscriber answers requests to that subject
  closed,         // the program has closed or drained the connection
  bad_subject,    // a subject, a queue group or a header that NATS does not allow: nothing was sent
  too_large,      // more bytes than the server takes in one message: nothing was sent
  too_much_kept,  // too many bytes waited to be read, most of them in this subscription
  refused,        // JetStream did not store the message, or the server did not take a command
};
const char* name_of(failure kind) noexcept;

// Thrown by the calls of a connection.
//
// Example:
//     try {
//       throw troupe::nats::error(troupe::nats::failure::lost, "the server has ended", true);
//     } catch (const troupe::nats::error& e) {
//       std::cerr << troupe::nats::name_of(e.kind()) << ' ' << e.may_have_run() << '\n';
//     }
class error : public troupe::error {
 public:
  error(failure kind, const std::string& text, bool may_have_run = false)
      : troupe::error(text), kind_(kind), may_have_run_(may_have_run) {}
  failure kind() const noexcept { return kind_; }
  verdict judged() const noexcept override;
  // Whether the request may still have taken effect: it was sent, and the answer was lost. False:
  // no one has received it.
  bool may_have_run() const noexcept { return may_have_run_; }

 private:
  failure kind_;
  bool may_have_run_;
};

// JetStream's refusal of a message, with its own numbers. Its kind is failure::refused.
class stream_error : public error {
 public:
  stream_error(const std::string& text, int code, int error_code)
      : error(failure::refused, text), code_(code), error_code_(error_code) {}
  // As in HTTP: 400, 503, …
  int code() const noexcept { return code_; }
  verdict judged() const noexcept override;
  // Names the reason: 10071 for a wrong last sequence, 10060 for another stream than expected.
  int error_code() const noexcept { return error_code_; }

 private:
  int code_, error_code_;
};

}  // namespace troupe::nats
