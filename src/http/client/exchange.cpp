#include "http/client/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "http/server/one_at_a_time.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {

task<> exchange::send(std::string_view bytes) {
  if (cut_off_) throw io_error("send", where_ + ", of which a piece was given up", EPIPE);
  cut_off_ = true;  // it stays set when this task is cancelled in the middle
  try {
    co_await wire_->send(bytes, life_, core_->options.write_time);
  } catch (const io_error&) {
    refused_bytes_ = true;
    keep_ = false;
    throw;
  } catch (const timed_out&) {
    // The server takes no more of the request, and may have said why.
    refused_bytes_ = !life_.over() && wire_->has_news();
    keep_ = false;
    throw;
  }
  cut_off_ = false;
}

task<> exchange::send_chunk(std::string_view bytes) {
  std::array<char, 18> size;
  char* const end = std::to_chars(size.data(), size.data() + 16, bytes.size(), 16).ptr;
  std::string chunk(size.data(), end);
  chunk.append("\r\n").append(bytes).append("\r\n");
  co_await send(chunk);
}

void exchange::refuse(fault why) {
  wire_.reset();
  throw client_error(client_failure::bad_response, where_, text_of(why), why);
}

void exchange::end_early() {
  wire_.reset();
  if (heard_)
    throw client_error(client_failure::truncated, where_,
                       "the connection ended in the middle of the answer");
  throw client_error(client_failure::closed, where_, "the connection ended before the answer");
}

// Returns false at the end of the stream. A TLS stream that ended without an announced end counts
// as truncated, whatever HTTP says: an attacker may have cut it.
task<bool> exchange::receive(const tasks::limits& within) {
  bool cut = false;
  std::size_t bytes = 0;
  try {
    bytes = co_await wire_->receive(within);
  } catch (const tls_error& e) {
    if (e.reason() != tls_failure::truncated) throw;
    cut = true;
  }
  if (cut) end_early();
  heard_ = heard_ || bytes > 0;
  co_return bytes > 0;
}

task<parser::step> exchange::next_step(const tasks::limits& within) {
  for (;;) {
    parser::step step = wire_->reads.next(wire_->input());
    if (step.what == parser::event::refused) refuse(wire_->reads.why());
    if (step.what != parser::event::need_more) co_return step;
    wire_->consume(step.consumed);
    const bool more = co_await receive(within);
    if (more) continue;
    step = wire_->reads.finish();
    keep_ = false;
    if (step.what == parser::event::refused || !heard_) end_early();
    step.consumed = 0;
    co_return step;
  }
}

task<> exchange::read_head(http::method asked) {
  try {
    co_await read_head_within(asked, life_.within(core_->options.head_time));
  } catch (const timed_out&) {
    throw timed_out(
        "troupe: http: " + where_ +
        ": no answer in time: try again, or allow more (client_options::head_time, or the " +
        "request's own)");
  }
}

task<> exchange::read_head_within(http::method asked, tasks::limits soon) {
  wire_->reads.answers(asked);
  for (int interim = 0;; ++interim) {
    if (interim > interim_max) refuse(fault::bad_start_line);
    parser::step step = co_await next_step(soon);
    if (step.what != parser::event::head) end_early();
    const message_head& head = wire_->reads.head();
    if (head.status >= 200 || (head.status == 101 && may_upgrade_)) {
      keep_head(head);
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

namespace {

// Copies the fields to `text`, and their positions in it to `positions`.
void copy_fields(const http::fields& from, std::string& text,
                 std::vector<http::fields::position>& positions) {
  for (const field one : from) {
    const auto name = static_cast<std::uint32_t>(text.size());
    text += one.name;
    const auto value = static_cast<std::uint32_t>(text.size());
    text += one.value;
    positions.push_back({name, static_cast<std::uint32_t>(one.name.size()), value,
                         static_cast<std::uint32_t>(one.value.size())});
  }
}

}  // namespace

void exchange::keep_head(const message_head& head) {
  head_.status = head.status;
  head_.has_length = head.has_length;
  head_.length = head.length;
  keep_ = keep_ && head.keep_alive;
  head_text_ = head.reason;
  copy_fields(head.fields, head_text_, head_positions_);
  head_.reason = std::string_view(head_text_).substr(0, head.reason.size());
}

void exchange::keep_trailer(const http::fields& trailer) {
  copy_fields(trailer, trailer_text_, trailer_positions_);
}

// The answer has been read. A connection that has more input than that is closed: no request asked
// for that.
void exchange::finish() {
  done_ = true;
  if (keep_ && wire_->input().empty()) core_->pool.put(at_.origin(), std::move(wire_));
  wire_.reset();
}

void exchange::throw_slow() const {
  throw client_error(client_failure::too_slow, where_, "the body comes too slowly");
}

task<std::string_view> exchange::next_piece() {
  if (done_) co_return std::string_view();
  const one_at_a_time alone(
      is_read_, "troupe: http::client_response: a read is under way already: await it first");
  // thrown again, because the read that got it first may have been cancelled
  if (wire_ == nullptr && is_slow_) throw_slow();
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
      is_slow_ = true;
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
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up) throw cancelled("troupe: http: " + where_ + ": the read was given up");
  const parser::step given = *std::exchange(piece_, std::nullopt);
  consumed_ = given.consumed;
  co_return given.body;
}

task<std::string> exchange::read_all() {
  std::string all;
  for (;;) {
    const std::string_view piece = co_await next_piece();
    if (piece.empty()) co_return all;
    if (piece.size() > core_->options.body_bytes - all.size()) {
      wire_.reset();
      throw client_error(
          client_failure::body_too_large, where_,
          "the body has more than " + std::to_string(core_->options.body_bytes) + " bytes");
    }
    all += piece;
  }
}

}  // namespace troupe::http
