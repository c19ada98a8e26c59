// limits: functions in front of handlers that limit requests by rate, by number and by time.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "troupe/base/time_span.hpp"
#include "troupe/http/around/around.hpp"
#include "troupe/kit/keyed_rate_limiter.hpp"
#include "troupe/sync/semaphore.hpp"

namespace troupe::http {

// The key by which requests are counted; nullopt: this request is not counted.
using request_key = std::function<std::optional<std::string>(const request&)>;

// The address of the client (request::client()), without its port; of an IPv6 address its /64
// network, since each host can use a whole network. All clients of a Unix socket have the same key.
std::optional<std::string> peer_key(const request& asked);

// Limits the rate of requests of each key; a request beyond it is answered 429 with Retry-After. It
// remembers the 10,000 keys used last.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("hello"); });
//     routes.around(troupe::http::rate_per({.tokens = 100, .per = std::chrono::minutes(1)}));
//     routes.around(troupe::http::rate_per({.tokens = 10}, [](const troupe::http::request& asked) {
//       return asked.cookie<std::optional<std::string>>("session");
//     }));
class rate_per {
 public:
  explicit rate_per(rate_limit limit, request_key key = peer_key)
      : limiter_(limit), key_(std::move(key)) {}
  std::optional<response> operator()(const request& asked) const;

 private:
  keyed_rate_limiter<std::string> limiter_;
  request_key key_;
};

// Limits the number of concurrent requests; one more is answered 503 with Retry-After: 1, and does
// not wait. The routes that it is put in front of share the limit.
class at_a_time {
 public:
  explicit at_a_time(std::uint64_t requests) : free_(std::make_shared<semaphore>(requests)) {}
  task<response> operator()(request& asked, next_handler next) const;

 private:
  std::shared_ptr<semaphore> free_;
};

// Limits the number of concurrent requests of each key, which are requests whose handlers have not
// answered. One more is answered 429 with Retry-After: 1, and does not wait. The routes that it is
// put in front of share the limit. Cost: an entry for each key that has requests under way.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("hello"); });
//     routes.around(troupe::http::at_a_time_per(10));
//     routes.around(troupe::http::at_a_time_per(2, [](const troupe::http::request& asked) {
//       return asked.cookie<std::optional<std::string>>("session");
//     }));
class at_a_time_per {
 public:
  explicit at_a_time_per(std::uint64_t requests, request_key key = peer_key);
  task<response> operator()(request& asked, next_handler next) const;

 private:
  struct counts;
  std::shared_ptr<counts> counts_;
  request_key key_;
};

// Limits the time until the handler returns its answer: then the handler is cancelled, and the
// request is answered 503. The handler's await ends; a handler that awaits nothing is not
// interrupted. The time to stream an answer is not limited.
class time_limit {
 public:
  explicit time_limit(time_span at_most) noexcept : at_most_(at_most) {}
  task<response> operator()(request& asked, next_handler next) const;

 private:
  std::chrono::nanoseconds at_most_;
};

// A resource that a handler needs is full or unavailable: the handler throws an error with the
// time after which to try again (error::try_again_in). Such errors are try_later (circuit_open and
// origin_full among them), mailbox_full, timed_out, an io_error for an unreachable peer, a
// client_error for a server that has ended or given up, and the errors of a database, of NATS or of
// a cluster that is busy, full or unreachable. The answer is 503 with the time as Retry-After, and
// no failure. Errors caused by a disconnect of the request's client are excepted.
class overload_as_503 {
 public:
  task<response> operator()(request& asked, next_handler next) const;
};

// An exception of the handler is passed to `tell`, and answered 500, or 503 with Retry-After where
// overload_as_503 does so; the connection stays open, and the program has no failure. Excepted are
// refused, cancelled, and errors caused by a disconnect of the client: those belong to the
// connection.
class recover {
 public:
  using function = std::function<void(const request&, std::exception_ptr)>;
  explicit recover(function tell) : tell_(std::move(tell)) {}
  task<response> operator()(request& asked, next_handler next) const;

 private:
  function tell_;
};

}  // namespace troupe::http
