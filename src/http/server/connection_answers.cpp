// connection: how answers are written.
#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "http/server/connection.hpp"
#include "http/h1/date.hpp"
#include "http/routing/response_parts.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/io/error.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {

namespace {

// "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", made once a second and thread. Called in turns only,
// never over a suspension.
TROUPE_NOINLINE std::string_view date_line() {
  struct cache {
    std::time_t second = -1;
    std::array<char, 6 + date_bytes + 2> line{'D', 'a', 't', 'e', ':', ' '};
  };
  thread_local cache kept;
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  if (time.tv_sec != kept.second) {
    kept.second = time.tv_sec;
    const std::array<char, date_bytes> date = write_date(kept.second);
    *std::copy(date.begin(), date.end(), kept.line.begin() + 6) = '\r';
    kept.line.back() = '\n';
  }
  return {kept.line.data(), kept.line.size()};
}

// Behind the head of these nothing comes, whatever it says.
bool may_have_body(int status) noexcept { return status >= 200 && status != 204 && status != 304; }

}  // namespace

void connection::add_status(int status) {
  if (status == 200) return out_.add("HTTP/1.1 200 OK\r\n");
  out_.add("HTTP/1.1 ");
  out_.add(static_cast<std::uint64_t>(status));
  out_.add(" ");
  out_.add(reason_of(status));
  out_.add("\r\n");
}

void connection::add_head(const response& with, int status, bool has_length, std::uint64_t length,
                          bool chunked) {
  if (with.closes_ || server_->stopping.stop_requested()) close_after_this();
  add_status(status);
  out_.add(date_line());
  if (!server_->options.name.empty()) {
    out_.add("Server: ");
    out_.add(server_->options.name);
    out_.add("\r\n");
  }
  if (!with.type_.empty()) {
    out_.add("Content-Type: ");
    out_.add(with.type_);
    out_.add("\r\n");
  }
  if (chunked) out_.add("Transfer-Encoding: chunked\r\n");
  if (has_length) {
    out_.add("Content-Length: ");
    out_.add(length);
    out_.add("\r\n");
  }
  out_.add(with.fields_);
  if (closing_) {
    out_.add("Connection: close\r\n");
  } else if (parser_.head().minor_version == 0) {
    out_.add("Connection: keep-alive\r\n");
  }
  out_.add("\r\n");
}

namespace {

// Whether the handler gave a Content-Type among the other fields.
bool has_type_of_its_own(std::string_view fields) noexcept {
  while (!fields.empty()) {
    if (same_word(take_field_name(fields), "Content-Type")) return true;
  }
  return false;
}

}  // namespace

// Those that wait for nothing.
void connection::answer(response& with) {
  const bool has_body = may_have_body(with.status_);
  if (with.special_ != nullptr) {
    const file_part& part = with.special_->file;
    add_head(with, with.status_, has_body, part.bytes, false);
    if (silent_ || !has_body) return;
    const std::size_t before = out_.size();
    if (read_file(part, 0, {out_.grow(part.bytes), part.bytes}) == part.bytes) return;
    // It has been shortened meanwhile, and its length is said already.
    out_.cut(before);
    closing_ = incomplete_ = true;
    return;
  }
  std::string_view body = with.body();
  if (with.status_ >= 400 && body.empty() && with.type_.empty() &&
      !has_type_of_its_own(with.fields_)) [[unlikely]] {
    with.type_ = "text/plain";
    with.body_.append(reason_of(with.status_)).append("\n");
    body = with.body_;
  }
  add_head(with, with.status_, has_body, body.size(), false);
  if (has_body && !silent_) out_.add(body);
}

// Of the server's own: `fields` are whole lines.
void connection::answer_plainly(int status, std::string_view fields) {
  const std::string_view words = status == 204 ? std::string_view() : reason_of(status);
  add_status(status);
  out_.add(date_line());
  if (status != 204) {
    out_.add("Content-Type: text/plain\r\nContent-Length: ");
    out_.add(words.size() + 1);
    out_.add("\r\n");
  }
  out_.add(fields);
  if (closing_) out_.add("Connection: close\r\n");
  out_.add("\r\n");
  if (status == 204 || silent_) return;
  out_.add(words);
  out_.add("\n");
}

void connection::answer_exception(std::exception_ptr thrown) {
  closing_ = true;
  // Of what streams throw when there is nobody any more to be answered.
  bool by_peer = false;
  try {
    std::rethrow_exception(thrown);
  } catch (const refused& why) {
    if (!broken_) refuse(why.why());
    return;
  } catch (const io_error&) {
    by_peer = broken_;
  } catch (const tls_error&) {
    by_peer = broken_;
  } catch (const timed_out&) {
    by_peer = broken_;
  } catch (const cancelled&) {
    by_peer = broken_ || is_gone_;  // the handler has given up by its request's client_gone()
  } catch (...) {
  }
  if (by_peer) return;
  failure_ = std::move(thrown);
  lingers_ = !body_ended_;
  if (answer_begun_ || broken_) return;
  answer_plainly(500);
}

task<> connection::answer_waiting(response& with) {
  const message_head& head = parser_.head();
  // What is left of the body would take too long, or never come.
  if (!body_ended_ &&
      (continue_due_ || (head.has_length && head.length - body_bytes_ > skipped_bytes_max)))
    closing_ = true;
  if (with.special_ == nullptr) {
    answer(with);
    co_return;
  }
  switch (with.special_->what) {
    case response::special::kind::file:
      if (with.special_->is_small_file()) {
        answer(with);
      } else {
        const bool has_body = may_have_body(with.status_);
        add_head(with, with.status_, has_body, with.special_->file.bytes, false);
        if (has_body && !silent_) co_await send_part(with.special_->file);
      }
      break;
    case response::special::kind::stream:
    case response::special::kind::events:
      co_await send_stream(with);
      break;
    case response::special::kind::websocket:
      co_await talk(with);
      break;
  }
}

task<> connection::send_part(const file_part& part) {
  answer_begun_ = incomplete_ = true;
  co_await flush();
  const std::uint64_t sent = co_await send_file(part.from, part.offset, part.bytes);
  incomplete_ = sent != part.bytes;
  if (incomplete_) closing_ = true;  // it has been shortened meanwhile
}

task<> connection::send_stream(response& with) {
  const bool has_body = may_have_body(with.status_),
             chunked = has_body && parser_.head().minor_version == 1;
  if (has_body && !chunked) closing_ = true;
  add_head(with, with.status_, false, 0, chunked);
  answer_begun_ = true;
  co_await flush();
  if (silent_ || !has_body) co_return;
  incomplete_ = true;
  body_writer writer(*this, chunked, false);
  if (with.special_->what == response::special::kind::events) {
    event_writer events(writer);
    task<> running = with.special_->events(events);
    co_await std::move(running);
  } else {
    task<> running = with.special_->stream(writer);
    co_await std::move(running);
  }
  co_await writer.finish();
  incomplete_ = false;
}

task<> connection::talk(response& with) {
  const message_head& head = parser_.head();
  // Where a body would end, and the frames begin, a proxy might see otherwise.
  if (head.has_body) closing_ = true;
  websocket_answer said =
      head.has_body ? websocket_answer() : websocket_handshake(head, with.special_->socket);
  if (said.status != 101) {
    response plain(said.status);
    if (!said.why.empty()) plain = response::text(said.why + "\n").status(said.status);
    plain.fields_ = said.fields;
    answer(plain);
    co_return;
  }
  out_.add("HTTP/1.1 101 Switching Protocols\r\n");
  out_.add(date_line());
  out_.add("Connection: Upgrade\r\nUpgrade: websocket\r\n");
  out_.add(said.fields);
  out_.add(with.fields_);
  out_.add("\r\n");
  answer_begun_ = true;
  closing_ = lingers_ = true;
  may_watch_ = false;
  if (watch_ != nullptr) co_await end_watch();
  co_await flush();
  server_->unpark(*this);  // it was idle a moment ago, for who looked at it then
  phase_.store(phase::upgraded, std::memory_order_relaxed);  // order: relaxed  a hint for the sweep
  std::string begun(in_.view());
  in_.use(begun.size());
  task<> running = websocket_conversation(*this, std::move(begun), std::move(with.special_->talk),
                                          with.special_->socket, std::move(said.terms));
  co_await std::move(running);
}

}  // namespace troupe::http
