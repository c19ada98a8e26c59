#include "http/server/server_connection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "base/text/release.hpp"
#include "http/behind_proxy/address.hpp"
#include "http/h1/date.hpp"
#include "http/routing/response_parts.hpp"
#include "http/values/page_of.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/trace_context.hpp"
#include "troupe/task/when.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {
namespace {

parser_limits limits_of(const server_options& options) {
  parser_limits limits;
  limits.head_bytes = options.head_bytes;
  limits.target_bytes = options.target_bytes;
  limits.fields = options.fields;
  limits.chunk_extension_bytes = options.chunk_extension_bytes;
  return limits;
}

}  // namespace

connection::connection(std::shared_ptr<server_state> owner, server_state::client_peer& counted,
                       const connection_past& was)
    : live_connection(counted),
      handling(*owner),
      server_(std::move(owner)),
      past_(was),
      parser_(side::requests, limits_of(server_->options)),
      account_(*this) {
  account_.open(server_->kept, client_);
  request_.head_ = &parser_.head();
  const ending why = std::exchange(past_.why, ending::none);
  if (why != ending::none && request_end(why)) server_->ended.count(why);
}

// While it is on, each end of the connection is a reset, even by an exception, by the end of the
// runtime, or by the end of the process.
void connection::set_reset_at_end(bool on) noexcept {
  resets_.store(on, std::memory_order_relaxed);  // order: relaxed  see live_connection::shut()
  static_cast<void>(
      io::current_kernel().set_option(wire().fd(), SOL_SOCKET, SO_LINGER, on ? 0 : -1));
}

connection::~connection() {
  if (watch_ != nullptr) watch_->drive_to_the_end();
  account_.close();
  leave_client();
}

void connection::wait_for_head(std::int64_t now_ns) noexcept {
  const server_options& options = server_->options;
  if (!input_.empty()) return clock_.wait_for_head(options.head_time, now_ns);
  clock_.end_head();
  clock_.begin_idle(past_.answered_one ? phase::idle : phase::fresh, options.idle_time, now_ns);
}

// In an observed program the last request has read the clock for its answer.
std::int64_t connection::now_after_answers() {
  const std::int64_t answered_ns = std::exchange(answered_ns_, 0);
  if (answered_ns == 0 || kit::is_simulated()) [[likely]]
    return now().count();
  if (program_began_ns_ == 0) program_began_ns_ = base::now_ns() - now().count();
  return answered_ns - program_began_ns_;
}

void connection::count_buffers() noexcept {
  const std::size_t bytes = kept_bytes();
  const std::size_t files = files_ + request_.kept_files();
  if (bytes > base::account::slack_bytes || files != 0) [[unlikely]]
    find_client();
  account_.hold(bytes, files);
}

std::size_t connection::kept_bytes() const noexcept {
  return input_.capacity() + out_.capacity() + (body_in_ ? body_in_->capacity() : 0) +
         request_.kept_bytes() + (decoded_ == nullptr ? 0 : decoded_->memory()) + encoder_bytes_ +
         above_bytes_ + queued_bytes_;
}

bool connection::reserve_encoder(std::size_t bytes) noexcept {
  find_client();
  if (!account_.has_spare(bytes)) return false;
  encoder_bytes_ = bytes;
  count_buffers();
  return true;
}

// A trusted proxy has no share: the memory of a request counts for the client that the proxy names.
void connection::find_client() noexcept {
  if (client_.has_share || server_->options.trusted_proxies.empty()) return;
  if (!serving_.is_under_way() || behind_ != nullptr) return;
  try {
    const std::optional<endpoint> at = client();
    if (!at || contains(server_->options.trusted_proxies, &*at)) return;
    behind_ = &server_->kept.join(client_key(*at));
    account_.open(server_->kept, *behind_);
  } catch (const std::exception&) {  // the peer has disconnected, or there is no memory to name it
  }
}

// A connection of a trusted proxy counts for the client that the proxy names, as long as a request
// of that client may wait. Returns false when the client has no room for it.
bool connection::count_for_client() noexcept {
  find_client();
  if (behind_ == nullptr) return true;
  if (server_->move_connection(client_, *behind_)) moved_to_ = behind_;
  return moved_to_ != nullptr;
}

void connection::leave_client() noexcept {
  if (behind_ == nullptr) return;
  if (account_.of() != nullptr) account_.open(server_->kept, client_);
  if (std::exchange(moved_to_, nullptr) != nullptr)
    static_cast<void>(server_->move_connection(*behind_, client_));
  server_->kept.leave(*std::exchange(behind_, nullptr));
}

// ---- requests ----

connection::next connection::advance() {
  for (;;) {
    if (closing_.is_due()) return next::close;
    if (out_.size() >= flush_bytes) return next::write;
    const parser::step step = parser_.next(input_.view());
    input_.use(step.consumed);
    if (step.what == event::need_more) return next::read;
    if (step.what == event::refused) {
      silent_ = false;
      refuse(parser_.why());
      return next::close;
    }
    if (step.what == event::head && !take_head()) return next::serve;
  }
}

// Returns false when the request has to wait for something.
bool connection::take_head() {
  const message_head& head = parser_.head();
  TROUPE_INVARIANT(!closing_.is_due(), "closing.L1");
  serving_.begin();
  clock_.end_head();
  body_ = paced_arrival();
  piece_ = {};
  silent_ = head.method == method::head;
  if (!head.keep_alive) closing_.close();
  if (closing_.is_near() || server_->stopping.stop_requested()) closing_.close_unasked();
  progress_.begin(!head.has_body          ? body_stage::ended
                  : head.expects_continue ? body_stage::withheld
                                          : body_stage::comes);
  if (!head.has_body) parser_.next({});  // the end of the body, which needs no byte
  const bool decoded = decode_path();
  if (decoded) {
    find_route();
  } else {
    route_ = {};
  }
  note_begin();
  if (!decoded) {
    refuse_request(fault::bad_target);
    return true;
  }
  if (route_.handler == nullptr) return not_found();
  const bool reads_body = route_.handler->call->reads_body;
  fault wrong = begin_decoding();
  if (reads_body && head.has_length && head.length > body_limit()) wrong = fault::body_too_large;
  if (wrong != fault::none) {
    refuse_request(wrong);
    return true;
  }
  parser_.limit_body(body_limit());
  if (route_.handler->call->waits) return false;
  if (!progress_.body_ended() && reads_body && (decoded_ != nullptr || !collect_here())) {
    serving_.collect_first();
    return false;
  }
  if (!run_handler_here()) return false;
  finish_request();
  return true;
}

bool connection::not_found() {
  response page = no_route();
  if (!progress_.body_ended()) closing_.close_and_linger();
  answer(page);
  if (!closing_.is_due()) finish_request();
  return true;
}

// Takes the body as a view, if all of it has arrived in one piece. Returns false when it has not.
bool connection::collect_here() {
  const message_head& head = parser_.head();
  if (!head.has_length || input_.view().size() < head.length) return false;
  const parser::step whole = parser_.next(input_.view());
  input_.use(whole.consumed);
  request_.body_ = whole.body;
  parser_.next({});
  progress_.end_body();
  return true;
}

// Runs a handler that is not a coroutine. Returns false when its answer has to wait for something;
// otherwise the request is to be finished.
bool connection::run_handler_here() {
  // Nothing reads the rest of the body.
  if (!progress_.body_ended()) closing_.close_and_linger();
  std::exception_ptr thrown;
  response result = run_handler(thrown);
  if (thrown != nullptr) {
    answer_exception(std::move(thrown), false);
    return true;
  }
  if (result.special_ != nullptr && !result.special_->is_small_file()) {
    answer_ = std::move(result);
    return false;
  }
  answer(result);
  return true;
}

void connection::finish_request() noexcept {
  if (watch_ != nullptr) [[unlikely]] {
    watch_->drive_to_the_end();  // it still waits only where this task is cancelled
    watch_.reset();
  }
  if (is_noted()) [[unlikely]]
    note_end();
  past_.answered_one = true;
  progress_.finish();
  request_.body_ = {};
  request_.trailer_ = {};
  if (decoded_ != nullptr) [[unlikely]]
    decoded_.reset();
  serving_.end();
  files_ = encoder_bytes_ = 0;
  if (behind_ != nullptr) [[unlikely]]
    leave_client();
  if (request_.collected_.capacity() > kept_body_bytes) base::release(request_.collected_);
  request_.collected_.clear();
  request_.is_taken_ = request_.is_parted_ = false;
  if (request_.kept_ != nullptr) [[unlikely]]
    request_.kept_.reset();
  if (memory_ && failure_ == nullptr) memory_->rollback(*empty_memory_);
}

// The peer broke a rule, or a limit of the server: it gets an error, and the connection closes.
void connection::refuse(fault why) {
  closing_.close_and_linger();
  if (progress_.answer_begun()) return;
  answer_plainly(status_of(why));
}

// The same after the head was read: the head contains the form of errors that the peer prefers.
void connection::refuse_request(fault why) {
  closing_.close_and_linger();
  if (progress_.answer_begun()) return;
  response page = refusal(why);
  answer(page);
}

// The server has one connection too many: it reads none of the requests of this one.
void connection::refuse_for_now() {
  closing_.close_and_linger();
  answer_plainly(503, "Retry-After: 1\r\n");
}

void connection::peer_ended() {
  const bool begun = parser_.inside() || !input_.empty();
  if (!begun) return;
  closing_.close();
  answer_plainly(400);  // the peer may have closed only its half
}

// ---- requests that wait ----

task<bool> connection::serve() {
  clock_.end_wait();
  std::exception_ptr thrown;
  bool is_answered = false, is_cancelled = false;
  const bool collects = serving_.collects();
  if (!collects) serving_.begin_to_wait();  // a handler that is not a coroutine waits for nothing
  try {
    if (!count_for_client()) throw refused(fault::over_budget);
    if (collects) {
      co_await request_.collect();
      request_.body_ = request_.collected_;
      is_answered = run_handler_here();
    } else if (route_.handler->call->waits) {
      // The answers to earlier requests need not wait for this one.
      if (!out_.empty()) co_await flush();
      begin_memory();
      try {
        std::optional<task<response>> later = start_handler();
        if (later) {
          answer_ = co_await std::move(*later);
        } else {
          answer_ = response(404);
        }
      } catch (const status_error& e) {
        answer_ = page_of(parser_.head().fields, e.status(), e.detail());
      }
    }
    serving_.begin_to_wait();
    watch_client();  // a handler that is not a coroutine may have answered with a stream
    if (!is_answered) {
      task<> answering = in_trace(answer_waiting(answer_));
      co_await std::move(answering);
    }
    if (watch_ != nullptr) co_await end_watch();
    progress_.exclude_answers();  // an error in the rest of the body gets none
    if (!progress_.body_ended() && !closing_.is_due()) co_await skip_body();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) is_cancelled = co_await submissions::being_cancelled();
  if (watch_ != nullptr && !is_cancelled) co_await end_watch();
  serving_.end_waiting();
  if (thrown != nullptr) answer_exception(std::move(thrown), is_cancelled);
  if (health_.is_cut_off()) out_.clear();
  base::release(answer_.body_);
  answer_ = response();
  finish_request();
  if (body_in_) {
    input_.put(body_in_->view());
    body_in_.reset();
  }
  if (closing_.is_due() && !progress_.body_ended()) closing_.linger();
  answered_ns_ = 0;
  co_return !closing_.is_due();
}

gone_watch::half_close connection::half_close() const noexcept {
  return server_->options.half_close_is_gone ? gone_watch::half_close::is_gone
                                             : gone_watch::half_close::is_ignored;
}

// For a WebSocket.
task<> connection::peer_end() {
  const troupe::event never;
  const bool is_told = watch_ != nullptr && watch_->is_armed();
  const troupe::event reported = is_told ? watch_->reported() : never;
  co_await reported.wait();
}

// Called by the handler, through its request.
std::stop_token connection::client_gone() {
  if (watch_ == nullptr) watch_.reset(new gone_watch(half_close()));
  watch_client();
  if (!watch_->is_armed()) {
    watch_->check(wire());
  } else if (!progress_.body_ended()) {
    watch_->make_room(wire(), unread_bytes());
  }
  return watch_->token();
}

// How many bytes of the body may be unread, as far as buffering them is worthwhile. The sixteenth
// and the 16 KiB on top are for TLS, which adds bytes to the body.
std::size_t connection::unread_bytes() const noexcept {
  constexpr std::uint64_t most = 1024 * 1024;
  const message_head& head = parser_.head();
  const std::uint64_t left =
      std::min(head.has_length ? head.length - body_.bytes() : most, std::min(body_limit(), most));
  return static_cast<std::size_t>(left + left / 16 + 16 * 1024);
}

// The call ends with its client.
void connection::watch_for(call_end& ends, gone_watch::half_close how) {
  if (watch_ == nullptr) watch_.reset(new gone_watch(how));
  watch_client();
  ends.follow_client(watch_->token());
}

bool connection::is_client_gone() const noexcept {
  return watch_ != nullptr && watch_->token().stop_requested();
}

void connection::watch_client() noexcept {
  if (watch_ == nullptr || watch_->is_armed() || !serving_.may_wait()) return;
  if (health_.is_broken()) return watch_->tell();
  watch_->arm(wire());
}

// The request is over. When this task is cancelled, the destructor ends the watch.
task<> connection::end_watch() {
  watch_->end_telling();
  if (!watch_->is_armed()) co_return;
  watch_->disarm();
  co_await watch_->reported().wait();
}

task<> connection::flush() {
  co_await send(out_.view());
  out_.clear();
}

// ---- how bodies are read ----

task<std::string_view> connection::next_encoded() {
  const one_at_a_time alone(reading_,
                            "troupe: http::request: a read is under way already: await it first");
  while (!progress_.body_ended() && piece_.empty()) {
    input& from = body_in_ ? *body_in_ : input_;
    const parser::step step = parser_.next(from.view());
    from.use(step.consumed);
    if (step.what == event::refused) throw refused(parser_.why());
    if (step.what == event::end) {
      progress_.end_body();
      request_.trailer_ = parser_.trailer();
      break;
    }
    if (step.what == event::body) {
      body_.came(step.body.size());
      if (body_.bytes() > body_limit()) throw refused(fault::body_too_large);
      piece_ = step.body;
      break;
    }
    co_await await_body();
  }
  co_await tasks::before_taking();
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up && !piece_.empty()) throw cancelled("troupe: http: the read was given up");
  co_return std::exchange(piece_, {});
}

// Receives more bytes of the body, into a buffer of their own, so that the head stays where it is.
task<> connection::await_body() {
  if (progress_.continue_body()) out_.add("HTTP/1.1 100 Continue\r\n\r\n");
  // The answers to earlier requests also go out: the peer may wait for them. They may also be left
  // over from a read that was cancelled.
  if (!out_.empty()) co_await flush();
  if (!body_in_) {
    body_in_.emplace().put(input_.view());
    input_.use(input_.view().size());
  }
  const std::chrono::nanoseconds begun = now();
  clock_.begin_wait(phase::busy, body_.patience(message_pace()), begun.count());
  const std::span<char> room = body_in_->room(4096);
  count_buffers();
  bool is_over = false;
  std::size_t bytes = 0;
  try {
    bytes = co_await receive(room, std::chrono::nanoseconds::max());
  } catch (const cancelled&) {
    is_over = true;
  } catch (const error& failed) {  // a client that resets its connection has disconnected
    if (failed.judged().fault != verdict::party::peer) throw;
  }
  clock_.end_wait();
  body_.waited(now() - begun);
  if (is_over) {
    const ending why = requested_.why();
    if (why != ending::late && why != ending::over_budget)
      throw cancelled("troupe: http: the connection is ended");
    health_.mend();
    server_->revive(*this);
    throw refused(why == ending::late ? fault::too_slow : fault::over_budget);
  }
  if (bytes == 0) {
    tell_gone();
    throw refused(fault::truncated);
  }
  body_in_->came(bytes);
}

// Reads the rest of the body, so that the connection can be used for the next request. Gives up
// after skipped_bytes_max bytes.
task<> connection::skip_body() {
  if (progress_.body_is_withheld()) {
    closing_.close();  // the body may never come
    co_return;
  }
  for (std::size_t bytes = 0;;) {
    const std::string_view piece = co_await next_encoded();
    if (piece.empty()) co_return;
    bytes += piece.size();
    if (bytes > skipped_bytes_max) break;
  }
  closing_.close();
}

// ---- how answers are written ----

namespace {

// Nothing follows the head of an answer with one of these statuses, whatever the head contains. A
// 205 announces a length of zero.
bool may_have_body(int status) noexcept {
  return status >= 200 && status != 204 && status != 205 && status != 304;
}

}  // namespace

void connection::add_status(int status) {
  if (is_noted()) [[unlikely]] {
    note_status(status);
    const counted_request& request = counted_;
    answered_ns_ = request.is_counted() ? request.answered_ns() : 0;
  }
  if (status == 200) return out_.add("HTTP/1.1 200 OK\r\n");
  out_.add("HTTP/1.1 ");
  out_.add(static_cast<std::uint64_t>(status));
  out_.add(" ");
  out_.add(reason_of(status));
  out_.add("\r\n");
}

void connection::add_head(const response& with, int status, bool has_length, std::uint64_t length,
                          bool chunked) {
  if (with.closes_ || server_->stopping.stop_requested()) closing_.close_unasked();
  add_status(status);
  out_.add(date_line());
  if (!server_->options.name.empty()) {
    out_.add("Server: ");
    out_.add(server_->options.name);
    out_.add("\r\n");
  }
  if (!with.type_.empty()) {
    out_.add("Content-Type: ");
    out_.add(with.type_.view());
    out_.add("\r\n");
  }
  if (chunked) out_.add("Transfer-Encoding: chunked\r\n");
  if (has_length || status == 205) {
    out_.add("Content-Length: ");
    out_.add(status == 205 ? 0 : length);
    out_.add("\r\n");
  }
  if (tells_strict_transport(with)) out_.add(server_->strict_transport);
  out_.add(with.fields_);
  if (closing_.is_due()) {
    out_.add("Connection: close\r\n");
  } else if (parser_.head().minor_version == 0) {
    out_.add("Connection: keep-alive\r\n");
  }
  out_.add("\r\n");
}

// Adds an answer that has to wait for nothing.
void connection::answer(response& with) {
  const bool has_body = may_have_body(with.status_);
  if (with.special_ != nullptr) {
    const file_part& part = with.special_->file;
    add_head(with, with.status_, has_body, part.bytes, false);
    if (silent_ || !has_body) return;
    const std::size_t before = out_.size();
    if (read_file(part, 0, {out_.grow(part.bytes), part.bytes}) == part.bytes) return;
    // The file was shortened in the meantime, and the head with its length is already written.
    out_.cut(before);
    closing_.close();
    progress_.send_in_parts();
    return;
  }
  complete(with);
  const std::string_view body = with.body();
  add_head(with, with.status_, has_body, body.size(), false);
  if (has_body && !silent_) out_.add(body);
}

// Adds an answer that the server makes itself. `fields`: whole lines.
void connection::answer_plainly(int status, std::string_view fields) {
  const std::string_view words = status == 204 ? std::string_view() : reason_of(status);
  add_status(status);
  out_.add(date_line());
  if (status != 204) {
    out_.add("Content-Type: text/plain\r\nContent-Length: ");
    out_.add(words.size() + 1);
    out_.add("\r\n");
  }
  if (secure()) out_.add(server_->strict_transport);
  out_.add(fields);
  if (closing_.is_due()) out_.add("Connection: close\r\n");
  out_.add("\r\n");
  if (status == 204 || silent_) return;
  out_.add(words);
  out_.add("\n");
}

// `is_cancelled`: the connection's task is, since the drain time or the program is over.
void connection::answer_exception(std::exception_ptr thrown, bool is_cancelled) {
  closing_.close();
  if (trace_.get() != nullptr) [[unlikely]]
    tasks::fail_span(*trace_.get(), thrown);
  // True when a stream threw this because the peer that was to be answered has disconnected.
  bool by_peer = false;
  try {
    std::rethrow_exception(thrown);
  } catch (const refused& why) {
    if (!health_.is_broken()) refuse_request(why.why());
    return;
  } catch (const io_error&) {
    by_peer = health_.is_broken();
  } catch (const tls_error&) {
    by_peer = health_.is_broken();
  } catch (const timed_out&) {
    by_peer = health_.is_broken();
  } catch (const cancelled&) {
    // the handler stopped because of its request's client_gone(), or with its connection
    by_peer = health_.is_broken() || is_client_gone() || is_cancelled;
  } catch (...) {
  }
  if (by_peer) return;
  failure_ = std::move(thrown);
  closing_.set_lingers(!progress_.body_ended());
  if (progress_.answer_begun() || health_.is_broken()) return;
  response made(500);
  answer(made);
}

task<> connection::answer_waiting(response& with) {
  const message_head& head = parser_.head();
  // The rest of the body would take too long, or would never come.
  if (!progress_.body_ended() &&
      (progress_.body_is_withheld() ||
       (head.has_length && head.length - body_.bytes() > skipped_bytes_max)))
    closing_.close();
  if (with.special_ == nullptr) {
    answer(with);
    co_return;
  }
  switch (with.special_->answer_kind) {
    case response::special::kind::file:
      if (with.special_->is_small_file()) {
        answer(with);
      } else {
        const bool has_body = may_have_body(with.status_);
        add_head(with, with.status_, has_body, with.special_->file.bytes, false);
        if (has_body && !silent_) co_await send_part(with.special_->file);
      }
      break;
    case response::special::kind::streamed:
      co_await send_stream(with);
      break;
    case response::special::kind::websocket:
      co_await talk(with);
      break;
  }
}

task<> connection::send_part(const file_part& part) {
  progress_.send_in_parts();
  co_await flush();
  files_ = 1;
  count_buffers();
  const std::uint64_t sent = co_await send_file(part.from, part.offset, part.bytes);
  if (sent == part.bytes) {
    progress_.end_answer();
  } else {
    closing_.close();  // the file was shortened in the meantime
  }
}

task<> connection::send_stream(response& with) {
  const std::optional<std::uint64_t> length = with.special_->streamed.sent_length();
  const bool has_body = may_have_body(with.status_),
             chunked = has_body && !length && parser_.head().minor_version == 1,
             ends_with_connection = has_body && !length && !chunked && !silent_;
  if (has_body && !length && !chunked) closing_.close();
  add_head(with, with.status_, has_body && length, length.value_or(0), chunked);
  progress_.begin_answer();
  if (ends_with_connection) set_reset_at_end(true);
  co_await flush();
  if (silent_ || !has_body) co_return;
  progress_.send_in_parts();
  body_writer writer(*this, chunked, false, length);
  call_end ends;
  if (response::special::is_event_stream(with)) ends.follow_server(server_->hurried.get_token());
  watch_for(ends, half_close());
  task<bool> sending = send_streamed(with.special_->streamed, writer, ends);
  const bool is_whole = co_await std::move(sending);
  if (!is_whole) {
    closing_.close();
    co_return;
  }
  if (ends.why() == call_end::cause::server_stops) closing_.close_unasked();
  co_await writer.finish();
  if (ends_with_connection) set_reset_at_end(false);
  progress_.end_answer();
}

task<> connection::talk(response& with) {
  const message_head& head = parser_.head();
  // A proxy might disagree about the byte at which a body ends and the frames begin.
  if (head.has_body) closing_.close();
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
  if (is_noted()) [[unlikely]]
    note_status(101);
  out_.add(date_line());
  out_.add("Connection: Upgrade\r\nUpgrade: websocket\r\n");
  out_.add(said.fields);
  out_.add(with.fields_);
  out_.add("\r\n");
  progress_.begin_answer();
  closing_.close_and_linger();
  // A handler may have asked for a watch that takes the end of the client's sending half for its
  // end; but receive() finds that, behind the messages that have arrived before.
  if (watch_ != nullptr) {
    co_await end_watch();
    watch_.reset();
  }
  co_await flush();
  // undoes the end of a sweep that saw it idle a moment ago and would park it
  server_->unpark(*this);
  clock_.enter(phase::upgraded);
  task<> talking = talk_over(with, std::move(said.terms));
  co_await std::move(talking);
}

task<> connection::talk_over(response& with, websocket_terms terms) {
  std::string begun(input_.view());
  input_.use(begun.size());
  call_end ends;
  ends.follow_server(server_->hurried.get_token());
  watch_for(ends, half_close() == gone_watch::half_close::is_gone
                      ? gone_watch::half_close::is_reported
                      : gone_watch::half_close::is_ignored);
  const struct talked_over {  // receive() refers to it
    call_end*& at;
    ~talked_over() { at = nullptr; }
  } here{call_};
  call_ = &ends;
  task<> running =
      websocket_conversation(*this, std::move(begun), std::move(with.special_->talk),
                             with.special_->socket, std::move(terms), ends, peer_end());
  co_await std::move(running);
}

}  // namespace troupe::http
