#include "http/client/wire_exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "http/client/connect.hpp"
#include "http/server/calls/gone_watch.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {
namespace {

// a body up to this size is sent together with the head
constexpr std::size_t small_body_bytes = 16 * 1024;

}  // namespace

task<> wire_exchange::send_request(client_request& asked, const route& by,
                                   const std::string& lines) {
  const std::string& method = asked.method();
  const std::string& body = client_access::body(asked);
  upload_function& pieces = client_access::upload(asked);
  std::string head = first_lines(method, at_, by) + lines;
  if (pieces) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (has_length_line(asked)) {
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  head += "\r\n";
  const bool is_small = !pieces && body.size() <= small_body_bytes;
  if (is_small) head += body;
  co_await send(head);
  if (is_small) co_return;
  if (!pieces) {
    co_await send(body);
    co_return;
  }
  upload writer(*this);
  const bool is_whole = co_await run_upload(pieces(writer), server_end());
  if (!is_whole) {  // the server may have sent the reason
    refused_bytes_ = true;
    keep_ = false;
    throw io_error("send", where_ + ", whose server has ended the connection", EPIPE);
  }
  const std::string end = "0\r\n" + writer.trailer_lines() + "\r\n";
  co_await send(end);
}

task<> wire_exchange::server_end() {
  const struct watched {
    gone_watch& by;
    ~watched() {
      by.drive_to_the_end();
      by.drop();
    }
  } end{*new gone_watch(gone_watch::half_close::is_reported)};
  end.by.arm(wire_->below());
  const event reported = end.by.reported();
  co_await reported.wait();
}

task<> wire_exchange::send(std::string_view bytes) {
  if (cut_off_) throw io_error("send", where_ + ", of which a piece was given up", EPIPE);
  cut_off_ = true;  // it stays set when this task is cancelled in the middle
  try {
    co_await wire_->send(bytes, life_, core_->options.write_time);
  } catch (const io_error&) {
    refused_bytes_ = true;
    keep_ = false;
    throw;
  } catch (const timed_out&) {
    // The server accepts no more of the request, and may have sent the reason.
    refused_bytes_ = !life_.over() && wire_->has_news();
    keep_ = false;
    throw;
  }
  cut_off_ = false;
}

task<> wire_exchange::send_piece(std::string_view bytes) {
  std::array<char, 18> size;
  char* const end = std::to_chars(size.data(), size.data() + 16, bytes.size(), 16).ptr;
  std::string chunk(size.data(), end);
  chunk.append("\r\n").append(bytes).append("\r\n");
  co_await send(chunk);
}

void wire_exchange::refuse(fault why) {
  wire_.reset();
  throw client_error(client_failure::bad_response, where_, text_of(why), why);
}

void wire_exchange::end_early() {
  wire_.reset();
  if (heard())
    throw client_error(client_failure::truncated, where_,
                       "the connection ended in the middle of the answer");
  throw client_error(client_failure::closed, where_, "the connection ended before the answer");
}

// Returns false at the end of the stream. A TLS stream that ended without an announced end counts
// as truncated, even if HTTP allows the end here: an attacker may have cut it. The same holds for a
// connection that was reset in the middle of an answer: with the reset the server marks the answer
// as incomplete.
task<bool> wire_exchange::receive(const tasks::limits& within) {
  bool cut = false;
  std::size_t bytes = 0;
  try {
    bytes = co_await wire_->receive(within);
  } catch (const tls_error& e) {
    if (e.reason() != tls_failure::truncated) throw;
    cut = true;
  } catch (const io_error&) {
    if (!heard()) throw;
    cut = true;
  }
  if (cut) end_early();
  if (bytes > 0) progress_.begin();
  co_return bytes > 0;
}

task<parser::step> wire_exchange::next_step(const tasks::limits& within) {
  for (;;) {
    parser::step step = wire_->reads.next(wire_->input());
    if (step.what == parser::event::refused) refuse(wire_->reads.why());
    if (step.what != parser::event::need_more) co_return step;
    wire_->consume(step.consumed);
    const bool more = co_await receive(within);
    if (more) continue;
    step = wire_->reads.finish();
    keep_ = false;
    if (step.what == parser::event::refused || !heard()) end_early();
    step.consumed = 0;
    co_return step;
  }
}

task<> wire_exchange::read_head_within(http::method asked, tasks::limits soon) {
  wire_->reads.answers(asked);
  for (int interim = 0;; ++interim) {
    if (interim > interim_max) refuse(fault::bad_start_line);
    parser::step step = co_await next_step(soon);
    if (step.what != parser::event::head) end_early();
    const message_head& head = wire_->reads.head();
    if (head.status >= 200 || (head.status == 101 && may_upgrade_)) {
      keep_head(head.status, head.reason, head.fields);
      if (head.has_length) length_ = head.length;
      keep_ = keep_ && head.keep_alive;
      wire_->consume(step.consumed);
      co_return;
    }
    // This client has asked for no other protocol.
    if (head.status == 101) refuse(fault::bad_start_line);
    wire_->consume(step.consumed);
    step = co_await next_step(soon);
    if (step.what != parser::event::end) refuse(fault::bad_start_line);
    wire_->consume(step.consumed);
    wire_->reads.answers(asked);
  }
}

// The answer has been read. A connection that has more input than that is closed: no request asked
// for that.
void wire_exchange::finish() {
  progress_.complete();
  if (keep_ && wire_->input().empty()) return core_->pool.put(std::move(wire_));
  wire_->say_goodbye();
  wire_.reset();
}

task<std::string_view> wire_exchange::next_encoded() {
  if (progress_.is_complete()) co_return std::string_view();
  const one_at_a_time alone(
      reading_, "troupe: http::client_response: a read is under way already: await it first");
  // thrown again, because the read that got it first may have been cancelled
  if (wire_ == nullptr && progress_.is_too_slow()) throw_slow();
  if (wire_ == nullptr)
    throw client_error(client_failure::truncated, where_, "an earlier read of it has failed");
  wire_->consume(std::exchange(consumed_, 0));
  const client_options& options = core_->options;
  while (!piece_) {
    // Only the time that the server makes us wait counts, not the time that the caller takes.
    const tasks::limits soon =
        life_.within(body_.patience({options.body_rate, options.body_grace}));
    const std::chrono::nanoseconds begins = now();
    parser::step step{};
    bool slow = false;
    try {
      step = co_await next_step(soon);
    } catch (const timed_out&) {
      slow = !life_.over();
      if (!slow) throw;
    } catch (const cancelled&) {
      body_.waited(now() - begins);
      throw;
    }
    if (slow) {
      wire_.reset();
      progress_.note_slow();
      throw_slow();
    }
    body_.waited(now() - begins);
    if (step.what == parser::event::end) {
      keep_trailer(wire_->reads.trailer());
      wire_->consume(step.consumed);
      finish();
      co_return std::string_view();
    }
    if (step.what != parser::event::body) refuse(fault::bad_start_line);
    if (step.body.empty()) {
      wire_->consume(step.consumed);
      continue;
    }
    piece_ = step;
    body_.came(step.body.size());
  }
  co_await check_given_up();
  const parser::step given = *std::exchange(piece_, std::nullopt);
  consumed_ = given.consumed;
  co_return given.body;
}

}  // namespace troupe::http
