// reach: how an exchange gets a connection to an origin, or a place on one that others use as well,
// and when it is tried again.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "http/client/connect.hpp"
#include "http/client/exchange.hpp"
#include "http/client/sending/client_core.hpp"
#include "http/client/streams/stream_exchange.hpp"
#include "http/client/wire_exchange.hpp"

namespace troupe::http {

// A connection, or a place on one, for an exchange.
struct reached {
  reached(std::shared_ptr<wire_exchange> exchange, bool kept) noexcept
      : wire(std::move(exchange)), is_kept(kept) {}
  reached(std::shared_ptr<stream_exchange> exchange, bool kept) noexcept
      : stream(std::move(exchange)), is_kept(kept) {}
  std::shared_ptr<exchange> by() const noexcept {
    return wire != nullptr ? std::shared_ptr<exchange>(wire) : stream;
  }

  // One of them is null: HTTP/1.1, or HTTP/2.
  std::shared_ptr<wire_exchange> wire;
  std::shared_ptr<stream_exchange> stream;
  bool is_kept;  // the connection existed before
};
// `fresh`: kept connections are not used.
task<reached> reach(std::shared_ptr<client_core> core, url at, route by, tasks::limits life,
                    bool fresh);

// How one attempt ended: with the head of an answer, or with an exception.
struct attempt {
  attempt() noexcept {}
  std::exception_ptr failure;
  bool stale = false;  // not a byte of an answer came: the kept connection was already dead
};
// A server may answer, and close or stop reading, before it has all of the request. A failure to
// send therefore does not count when there is an answer.
task<attempt> try_once(exchange& by, client_request& asked, const route& way,
                       const std::string& lines);

// Whether a request that has failed is sent again.
class repetition {
 public:
  // `may_repeat`: a server may handle it twice. `is_spent`: its body exists no longer.
  repetition(bool may_repeat, bool is_spent) noexcept
      : may_repeat_(may_repeat), is_spent_(is_spent) {}
  // Waits a moment before an attempt that may otherwise come too early.
  task<bool> follows(const reached& used, const attempt& ended, tasks::limits life);
  // Kept connections have turned out to be dead.
  bool wants_fresh() const noexcept { return wants_fresh_; }

 private:
  const bool may_repeat_, is_spent_;
  bool wants_fresh_ = false;
  int refusals_ = 0, moves_ = 0;
};

}  // namespace troupe::http
