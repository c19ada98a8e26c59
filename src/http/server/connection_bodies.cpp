// connection: how bodies are read.
#include <chrono>
#include <utility>

#include "http/server/connection.hpp"
#include "http/server/one_at_a_time.hpp"
#include "troupe/parallel/schedule.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {

task<std::string_view> connection::next_piece() {
  const one_at_a_time alone(is_read_,
                            "troupe: http::request: a read is under way already: await it first");
  while (!body_ended_ && piece_.empty()) {
    input& from = reads_aside_ ? body_in_ : in_;
    const parser::step step = parser_.next(from.view());
    from.use(step.consumed);
    if (step.what == event::refused) throw refused(parser_.why());
    if (step.what == event::end) {
      body_ended_ = true;
      request_.trailer_ = parser_.trailer();
      break;
    }
    if (step.what == event::body) {
      body_bytes_ += step.body.size();
      if (body_bytes_ > body_limit()) throw refused(fault::body_too_large);
      piece_ = step.body;
      break;
    }
    co_await await_body();
  }
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up && !piece_.empty()) throw cancelled("troupe: http: the read was given up");
  co_return std::exchange(piece_, {});
}

// More bytes of the body. They lie apart, so that the head stays where it is.
task<> connection::await_body() {
  if (std::exchange(continue_due_, false)) out_.add("HTTP/1.1 100 Continue\r\n\r\n");
  // With what was answered before: the peer may wait for that. Or by a read that was given up.
  if (!out_.empty()) co_await flush();
  if (!std::exchange(reads_aside_, true)) {
    body_in_.put(in_.view());
    in_.use(in_.view().size());
  }
  const server_options& options = server_->options;
  const std::int64_t begun_ns = now().count();
  if (options.body_rate != 0) {
    const std::chrono::nanoseconds due = std::chrono::seconds(body_bytes_ / options.body_rate);
    const std::chrono::nanoseconds longest = std::chrono::nanoseconds::max() - due;
    begin_wait(
        phase::busy,
        std::min(options.body_grace, longest) - std::chrono::nanoseconds(body_waited_ns_) + due,
        begun_ns);
  }
  const std::span<char> room = body_in_.room(4096);
  count_buffers();
  bool is_over = false;
  std::size_t bytes = 0;
  try {
    bytes = co_await receive(room, std::chrono::nanoseconds::max());
  } catch (const cancelled&) {
    is_over = true;
  }
  end_wait();
  // by reads that are given up, too: else who polls would wait for ever
  body_waited_ns_ += now().count() - begun_ns;
  if (is_over) {
    // order: acquire  pairs with connection::end/release
    if (ending_.load(std::memory_order_acquire) != ending::late)
      throw cancelled("troupe: http: the connection is ended");
    broken_ = false;
    server_->revive(*this);
    throw refused(fault::too_slow);
  }
  if (bytes == 0) {
    tell_gone();
    throw refused(fault::truncated);
  }
  body_in_.came(bytes);
}

// So that the connection can go on. Not for long.
task<> connection::skip_body() {
  if (continue_due_) {
    closing_ = true;  // it may never come
    co_return;
  }
  for (std::size_t bytes = 0;;) {
    const std::string_view piece = co_await next_piece();
    if (piece.empty()) co_return;
    bytes += piece.size();
    if (bytes > skipped_bytes_max) break;
  }
  closing_ = true;
}

}  // namespace troupe::http
