// frames: the bytes of a message to an actor on another node, and of its answer. Reading ends for
// any input bytes, and allocates no more memory than their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/cluster/calls.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::cluster::parts {

struct request_frame {
  std::uint64_t signature = 0;    // of the method's parameters and result
  std::int64_t remaining_us = 0;  // until the deadline; 0: none
  std::string_view kind, key, method;
  std::string_view trace;  // as written by write_trace(); empty: none
  enum class target : std::uint8_t {
    shard = 0,
    member = 1,   // the actor of that class that each node has for itself
    durable = 2,  // the arguments are a durable::stored_message
    cycle = 3,    // they are a durable::parts::cycle_question
  };
  target to = target::shard;
  std::string_view arguments;
};
// The trace of the calling handler: `traceparent`, a blank and `tracestate`, or only `traceparent`
// if `tracestate` is empty. Empty without a trace.
std::string write_trace();
std::optional<trace_context> read_trace(std::string_view from) noexcept;
std::string write_request(const request_frame& request);
// A request without its arguments, which belong behind it. It has room for a few.
std::vector<std::byte> write_head(const request_frame& request);
// Returns nullopt for bytes that are no request. Lifetime: the views point into `from`.
std::optional<request_frame> read_request(std::string_view from) noexcept;

enum class answer_kind : std::uint8_t {
  value = 0,
  exception = 1,  // its type and its text
  not_here = 2,   // this node does not own the actor: it did not run
  unknown_class = 3,
  unknown_method = 4,
  other_signature = 5,  // the text is the signature that this node has
  malformed = 6,        // the text names the arguments that could not be read
  full = 7,
  lost = 8,  // it may have run
  timed_out = 9,
  cancelled = 10,
  deadlock = 11,  // it did not run
};
// Sent as the type of an exception. No C++ type has such a name; nodes of older versions treat it
// as a failure of the handler.
inline constexpr std::string_view id_mismatch_type = "troupe: id_mismatch";
inline constexpr std::string_view schema_error_type = "troupe: schema_error";
inline constexpr std::string_view store_taken_type = "troupe: store_taken";
// The database has refused the call and done nothing; its error numbers follow the name. An error
// after which the database may have done the call travels as lost.
inline constexpr std::string_view database_error_type = "troupe: database::error";
struct answer_frame {
  answer_kind kind = answer_kind::value;
  std::string_view type;   // of an exception
  std::string_view bytes;  // the value, or a text
};
std::string write_answer(const answer_frame& answer);
std::optional<answer_frame> read_answer(std::string_view from) noexcept;
// The same. Errors: error(malformed) for bytes that are no answer.
answer_frame checked_answer(std::string_view from);

inline std::string_view as_text(std::span<const std::byte> from) noexcept {
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}
inline std::span<const std::byte> as_bytes(std::string_view from) noexcept {
  return std::as_bytes(std::span(from.data(), from.size()));
}

}  // namespace troupe::cluster::parts
