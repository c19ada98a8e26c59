// log: a line for each request.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

#include "troupe/http/around/around.hpp"

namespace troupe::http {

// `combined`: the format of Apache and nginx. `json`: an object with time, peer, method, target,
// status, bytes, ms, referer, agent, and id, if there is one (request_id).
enum class access_format : std::uint8_t { combined, json };

// Logs each request when its handler has answered, or has thrown: then with the status that the
// server answers with, or 499 when the client has disconnected. Requests that are refused before a
// handler is called are not logged: a malformed head, a length above the limit of bodies. Without a
// sink it is a line of troupe::log, of the logger "http.access" and the level info, with the fields
// peer, method, target, status, bytes, took, referer, agent, and id. With a sink, the sink gets the
// line, without a line end, in one of the formats. Bytes of the request that are not printable are
// escaped, so that no request can write a line of its own. The bytes are the size of the body, "-"
// (0 in JSON and in troupe::log) for a streamed body. Thread: `sink` is called on any thread, and
// by several threads at the same time.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text("hello"); });
//     routes.around(troupe::http::access_log());
//     routes.around(troupe::http::access_log([](std::string_view line) {
//       std::clog << std::string(line) + "\n";
//     }));
class access_log {
 public:
  using function = std::function<void(std::string_view line)>;
  access_log() = default;
  explicit access_log(function sink, access_format format = access_format::combined)
      : sink_(std::move(sink)), format_(format) {}
  task<response> operator()(request& asked, next_handler next) const;

 private:
  function sink_;
  access_format format_ = access_format::combined;
};

// Adds the field X-Request-Id to each answer: the request's id, if it has at most 128 letters,
// digits, '-', '_', '.' and '=', otherwise a new id. Put it behind access_log, which writes it
// (call routes.around for it before access_log's).
class request_id {
 public:
  void operator()(const request& asked, response& answer) const;
};

}  // namespace troupe::http
