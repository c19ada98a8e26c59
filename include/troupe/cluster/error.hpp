// error: the failures of a message to an actor of a cluster.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "troupe/base/error.hpp"

namespace troupe::cluster {

// The kind of a failure, by which a program decides how to react; it does not parse the text.
enum class failure : std::uint8_t {
  unreachable,     // the actor's owner could not be reached: the message did not run
  lost,            // the message was sent; it is unknown whether it ran
  unknown_method,  // the owner has no such class or method, or another signature: it did not run
  too_large,       // more bytes than a message may have: it did not run
  full,            // the owner or the connection to it has no space now: it did not run; try later
  malformed,       // the received bytes could not be read
  stopped,         // this node has been stopped
  denied,  // the NATS servers refuse this node's credentials, or the node lacks a permission
};
const char* name_of(failure kind) noexcept;

// Thrown by asks, and by calls of a node. An ask whose deadline passes throws timed_out instead;
// the message may have run.
//
// Example:
//     try {
//       throw troupe::cluster::error(troupe::cluster::failure::lost, "the node has ended");
//     } catch (const troupe::cluster::error& e) {
//       std::cerr << troupe::cluster::name_of(e.kind()) << ' ' << e.may_have_run() << '\n';
//     }
class error : public troupe::error {
 public:
  error(failure kind, const std::string& text) : troupe::error(text), kind_(kind) {}
  failure kind() const noexcept { return kind_; }
  verdict judged() const noexcept override;
  bool may_have_run() const noexcept { return kind_ == failure::lost; }

 private:
  failure kind_;
};

// The handler on another node threw an exception of a type that this program has not registered, or
// the handler of a durable actor threw. It carries the name of the exception's type, and the text.
class remote_exception : public troupe::error {
 public:
  remote_exception(std::string type, const std::string& text)
      : troupe::error(text), type_(std::move(type)) {}
  verdict judged() const noexcept override;
  // The type of the exception as the compiler spells it.
  const std::string& type() const noexcept { return type_; }

 private:
  std::string type_;
};

}  // namespace troupe::cluster
