// handling: one request and its handler, whatever protocol the request came by: its route, its
// memory, its trace, and the handler's exception.
//
// Threads: the task of the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/coding/decoded_body.hpp"
#include "http/server/numbers/request_counts.hpp"
#include "http/server/server_state.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::http {

class handling : protected request_source {
 public:
  handling(const handling&) = delete;

 protected:
  // `server` must outlive it. The derived class sets request_.head_.
  explicit handling(const server_state& server);
  ~handling() = default;

  const message_head& head() const noexcept { return *request_.head_; }

  // Returns false when the path is malformed.
  bool decode_path();
  void find_route();
  // The answer when there is no handler.
  response no_route() const;
  std::uint64_t body_limit() const noexcept;
  // Prepares to decode the body, if it is to be decoded. Call it when the route was found.
  fault begin_decoding();
  // The answer to a request that is refused; it contains the reason.
  response refusal(fault why) const;
  // The input of next_piece(): the next piece of the body as it came, valid until the next call.
  virtual task<std::string_view> next_encoded() = 0;

  // In an observed program the request is counted. It is in the trace in which its client made it,
  // with a new span; in none if there is no such field, or the field breaks the rules. When spans
  // are recorded, a request without a trace begins one. Call it when the route was looked for.
  void note_begin();
  // Whether the request is counted, or in a trace: call the next two then.
  bool is_noted() const noexcept { return trace_.get() != nullptr || counted_.is_counted(); }
  void note_status(int status) noexcept;
  void note_end() noexcept;
  // The task in the trace of the request, if any.
  template <class T>
  task<T> in_trace(task<T> call) const {
    if (trace_.get() == nullptr) [[likely]]
      return call;
    tasks::task_limits limits;
    limits.within = trace_.share();
    return tasks::run_within(std::move(call), std::move(limits));
  }

  task<std::string_view> next_piece() final {
    return decoded_ == nullptr ? next_encoded() : next_decoded();
  }
  std::optional<endpoint> client() final;

  void begin_memory();
  // Call it when no request is under way. Unless it `ends`, the next request uses the context
  // again, if that is as good as a new one.
  void rest_memory(bool ends) noexcept;

  // Runs a handler that is not a coroutine. If it throws, `thrown` is set, and the answer is empty.
  response run_handler(std::exception_ptr& thrown);
  // Calls a handler that is a coroutine. Returns nothing when the path does not fit it.
  std::optional<task<response>> start_handler();
  // Makes an exception of the handler a failure of the program.
  void report_failure() noexcept;
  // Adds a page to an error that has no body.
  void complete(response& with) const;
  // Whether the answer gets the line of server_state::strict_transport: unless it has such a field.
  bool tells_strict_transport(const response& with) const noexcept;

  const server_state& server_;
  http::request request_;
  owned_context memory_;  // of the request; null while there is none
  std::optional<snapshot> empty_memory_;
  // The handler's exception. It may refer to `memory_`: it is declared behind that and destroyed
  // before it.
  std::exception_ptr failure_;
  router::found route_;
  std::string path_;          // the decoded path, if it had to be decoded
  tasks::context_ref trace_;  // of the request
  counted_request counted_;
  std::unique_ptr<decoded_body> decoded_;  // of a body that is decoded
  std::size_t encoder_bytes_ = 0;          // for an answer that is streamed

 private:
  task<std::string_view> next_decoded();
  void begin_trace();
  void name_span();
};

}  // namespace troupe::http
