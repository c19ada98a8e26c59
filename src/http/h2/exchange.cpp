#include "http/h2/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/text/release.hpp"
#include "http/behind_proxy/address.hpp"
#include "http/h1/date.hpp"
#include "http/h1/target.hpp"
#include "http/routing/reopened_file.hpp"
#include "http/routing/response_parts.hpp"
#include "http/values/page_of.hpp"
#include "http/websocket/handshake/websocket_terms.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/when.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http::h2 {
namespace {

constexpr std::chrono::nanoseconds for_ever = std::chrono::nanoseconds::max();
// The most capacity that a buffer keeps for the next bytes.
constexpr std::size_t kept_capacity = 64 * 1024;

bool may_have_body(int status) noexcept { return status != 204 && status != 205 && status != 304; }

// Bytes that wait, as long as it lives.
class counted_bytes {
 public:
  counted_bytes(std::size_t& total, std::size_t bytes) noexcept : total_(total), bytes_(bytes) {
    total_ += bytes_;
  }
  counted_bytes(const counted_bytes&) = delete;
  ~counted_bytes() { total_ -= bytes_; }

 private:
  std::size_t& total_;
  const std::size_t bytes_;
};

}  // namespace

exchange::exchange(carrier& connection, std::int32_t stream, head_block&& head, bool ends)
    : handling(connection.server()),
      carrier_(connection),
      stream_(stream),
      block_(std::move(head)) {
  request_.head_ = &head_;
  progress_.begin(ends ? body_stage::ended : body_stage::comes);
  wrong_ = read_head(ends);
  if (wrong_ != fault::none) return;
  if (!decode_path()) {
    wrong_ = fault::bad_target;
    return;
  }
  find_route();
  note_begin();
  if (route_.handler == nullptr) return;
  const route_call& call = *route_.handler->call;
  wrong_ = begin_decoding();
  if (call.reads_body && head_.has_length && head_.length > body_limit())
    wrong_ = fault::body_too_large;
  if (!call.waits && call.reads_body && !is_websocket()) use_ = body_use::collected;
}

fault exchange::read_head(bool ends) {
  head_.major_version = 2;
  head_.minor_version = 0;
  head_.fields = block_.fields();
  head_.method_name = block_.method();
  head_.method = method_named(head_.method_name);
  silent_ = head_.method == method::head;
  head_.target = block_.path();
  head_.has_body = !ends;
  if (block_.wrong() != fault::none) return block_.wrong();
  if (head_.method == method::connect) {
    if (block_.protocol() != "websocket") return fault::unknown_method;
    // Handlers see a WebSocket as they see it by HTTP/1.1.
    use_ = body_use::websocket;
    head_.method = method::get;
    head_.method_name = name_of(method::get);
    head_.wants_upgrade = true;
  }
  if (!same_word(block_.scheme(), "https") && !same_word(block_.scheme(), "http"))
    return fault::bad_target;
  if (const fault wrong = check_target(head_); wrong != fault::none) return wrong;
  for (const field field : head_.fields) {
    if (field.name == "content-length") {
      const char* const end = field.value.data() + field.value.size();
      const auto [rest, bad] = std::from_chars(field.value.data(), end, head_.length);
      if (bad != std::errc{} || rest != end) return fault::bad_length;
      head_.has_length = true;
    } else if (field.name == "expect") {
      if (!same_word(field.value, "100-continue")) return fault::bad_expectation;
      head_.expects_continue = !ends;
    } else if (field.name == "traceparent") {
      head_.in_trace = true;
    }
  }
  if (head_.expects_continue) progress_.withhold_body();
  const std::string_view host =
      block_.authority().empty() ? head_.fields["host"] : block_.authority();
  if (host.empty()) return fault::no_host;
  if (!is_host(host)) return fault::bad_host;
  if (head_.host.empty()) head_.host = host;
  return fault::none;
}

// ---- input ----

void exchange::came(std::string_view piece) {
  if (is_done() || is_closed() || wrong_ != fault::none || route_.handler == nullptr) return;
  body_.came(piece.size());
  if (!is_websocket() && body_.bytes() > body_limit()) {
    wrong_ = fault::body_too_large;
  } else {
    unread_ += piece;
    if (collects()) kept_back_ += piece.size();
  }
  if (news_) news_->set();
}

void exchange::ended(head_block&& trailer) {
  if (trailer.fields().size() != 0) {
    trailer_.emplace(std::move(trailer));
    request_.trailer_ = trailer_->fields();
  }
  progress_.end_body();
  if (news_) news_->set();
}

void exchange::closed() noexcept {
  progress_.close();
  unsent_ = {};
  if (!is_done()) gone_.request_stop();
  if (news_) news_->set();
  if (taken_) taken_->set();
}

std::size_t exchange::kept_bytes() const noexcept {
  return sizeof *this + block_.bytes() + (trailer_ ? trailer_->bytes() : 0) + unread_.capacity() +
         piece_.capacity() + request_.kept_bytes() + pending_.capacity() +
         answer_.body_.capacity() + encoder_bytes_ + above_bytes_ + queued_bytes_ +
         (decoded_ == nullptr ? 0 : decoded_->memory());
}

std::size_t exchange::files() const noexcept { return files_ + request_.kept_files(); }

void exchange::count_kept() noexcept { carrier_.keep_to_budget(); }

bool exchange::reserve_encoder(std::size_t bytes) noexcept {
  if (!carrier_.reserve(*this, bytes)) return false;
  encoder_bytes_ = bytes;
  return true;
}

void exchange::retains(std::size_t bytes) noexcept {
  if (bytes > std::exchange(above_bytes_, bytes)) carrier_.keep_to_budget();
}

void exchange::took(std::size_t bytes) {
  if (is_closed() || progress_.body_ended()) return;
  kept_back_ += bytes;
  carrier_.give_window(*this);
}

std::size_t exchange::take_kept_back() noexcept {
  if (news_) news_->set();
  return std::exchange(kept_back_, 0);
}

// The reset may wait for long until the client takes it. A handler that has not returned may still
// refer to its input and to its answer.
void exchange::give_up() noexcept {
  closed();
  base::release(unread_);
  base::release(pending_);
  if (is_done()) base::release(answer_.body_);
}

exchange::own_account::own_account(exchange& owner, server_state& server, std::string_view client)
    : exchange_(owner), server_(server), peer_(server.kept.join(client)) {
  open(server.kept, peer_);
}
exchange::own_account::~own_account() {
  close();
  server_.kept.leave(peer_);
}
void exchange::own_account::end_account() noexcept {
  // order: relaxed  the reader that is woken looks at all streams, and the server's mutex orders it
  exchange_.is_over_budget_.store(true, std::memory_order_relaxed);
  exchange_.carrier_.end_streams_soon();
}

// A trusted proxy has no share: the memory of a request counts for the client that the proxy names.
void exchange::count_for_client() noexcept {
  if (account_ != nullptr) return;
  try {
    const std::optional<endpoint> at = client();
    if (!at || contains(server_.options.trusted_proxies, &*at)) return;
    account_ = std::make_unique<own_account>(*this, carrier_.server(), client_key(*at));
  } catch (const std::exception&) {  // the proxy has disconnected, or memory has run out
  }
}

void exchange::cut(bool counts) noexcept {
  if (is_websocket() && !progress_.body_ended()) progress_.end_body();
  progress_.cut_body();
  if (news_) news_->set();
  if (counts && !is_websocket()) gone_.request_stop();
}

task<> exchange::await_news(std::chrono::nanoseconds at_most, std::stop_token stop) {
  if (!news_) news_.emplace();
  news_->reset();
  if (at_most == for_ever) {
    co_await news_->wait().stop(std::move(stop));
  } else {
    co_await news_->wait().timeout(at_most).stop(std::move(stop));
  }
}

task<std::string_view> exchange::next_encoded() {
  const one_at_a_time alone(reading_,
                            "troupe: http::request: a read is under way already: await it first");
  while (unread_.empty() && !progress_.body_ended()) {
    if (wrong_ != fault::none) throw refused(wrong_);
    if (is_closed() || progress_.body_is_cut()) throw refused(fault::truncated);
    if (progress_.continue_body() && !progress_.answer_begun()) {
      carrier_.session().respond_meanwhile(stream_, 100);
      carrier_.wake_writer();
    }
    const std::chrono::nanoseconds begun = now();
    bool is_late = false;
    const bool is_withheld = is_kept_back();  // a client that has no window cannot send
    try {
      co_await await_news(is_withheld ? for_ever : body_.patience(message_pace()));
    } catch (const timed_out&) {
      is_late = true;
    }
    if (!is_withheld) body_.waited(now() - begun);
    if (is_late) throw refused(fault::too_slow);
  }
  if (wrong_ != fault::none) throw refused(wrong_);
  co_await tasks::before_taking();
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up && !unread_.empty()) throw cancelled("troupe: http: the read was given up");
  piece_.clear();
  std::swap(piece_, unread_);
  if (!piece_.empty() && !collects()) took(piece_.size());
  co_return piece_;
}

// For a WebSocket.
task<> exchange::peer_end() {
  while (!progress_.body_ended() && !is_closed()) {
    task<> news = await_news(for_ever);
    co_await std::move(news);
  }
}

task<std::size_t> exchange::receive(std::span<char> room, std::chrono::nanoseconds at_most) {
  const std::chrono::nanoseconds begun = now();
  // A function that receives learns of the server's stop by that.
  if (call_ != nullptr) call_->leave_server();
  while (unread_.empty() && !progress_.body_ended()) {
    if (is_closed()) throw io_error("receive", "a stream of HTTP/2 that was reset", ECONNRESET);
    const std::chrono::nanoseconds left =
        at_most == for_ever ? for_ever : at_most - (now() - begun);
    task<> news = await_news(left, server_.hurried.get_token());
    co_await std::move(news);
  }
  const std::size_t bytes = std::min(room.size(), unread_.size());
  std::copy_n(unread_.begin(), bytes, room.begin());
  unread_.erase(0, bytes);
  if (unread_.empty() && unread_.capacity() > kept_capacity) base::release(unread_);
  if (bytes != 0) took(bytes);
  co_return bytes;
}

// ---- who asks ----

endpoint exchange::peer() { return carrier_.peer(); }
bool exchange::has_address() const noexcept { return carrier_.has_address(); }
bool exchange::secure() const noexcept { return carrier_.secure(); }
std::stop_token exchange::client_gone() { return gone_.get_token(); }
std::optional<tls_certificate> exchange::client_certificate() {
  return carrier_.client_certificate();
}
slowest_pace exchange::message_pace() const noexcept {
  return {server_.options.body_rate, server_.options.body_grace};
}

// ---- handlers ----

bool exchange::begin() {
  if (is_closed()) {
    finish();  // the client has asked and given up in one breath
    return true;
  }
  if (wrong_ == fault::none && route_.handler != nullptr) {
    if (route_.handler->call->waits || is_collecting()) return false;
    return run_at_once();
  }
  answer(wrong_ != fault::none ? refusal(wrong_) : no_route());
  finish();
  return true;
}

// The collected body, decoded if it is to be.
fault exchange::decode_collected() {
  if (decoded_ == nullptr) return fault::none;
  decoded_->came(unread_);
  for (;;) {
    const std::string_view piece = decoded_->next();
    if (piece.empty()) break;
    request_.collected_ += piece;
  }
  decoded_->ended();
  return decoded_->wrong();
}

// A small file is sent together with its head, if the client takes it now.
bool exchange::must_wait(const response::special& part) const noexcept {
  return !part.is_small_file() || carrier_.session().window(stream_) == 0;
}

// Returns false when the answer has to wait for something.
bool exchange::run_at_once() {
  if (collects()) {
    if (const fault wrong = decode_collected(); wrong != fault::none) {
      answer(refusal(wrong));
      finish();
      return true;
    }
    request_.body_ = decoded_ == nullptr ? unread_ : request_.collected_;
  }
  std::exception_ptr thrown;
  response result = run_handler(thrown);
  if (thrown != nullptr) {
    answer_exception(std::move(thrown), false);
  } else if (result.special_ != nullptr && must_wait(*result.special_)) {
    answer_ = std::move(result);
    return false;
  } else {
    answer(std::move(result));
  }
  finish();
  return true;
}

// One stream's handler. Its exceptions are the stream's affair, and concern no other stream.
task<> exchange::serve() {
  handler_ = handler_stage::waits;
  std::exception_ptr thrown;
  try {
    if (answer_.special_ == nullptr) co_await run_handler_later();
    if (!progress_.answer_begun()) {
      task<> answering = in_trace(answer_waiting());
      co_await std::move(answering);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) {
    const bool is_cancelled = co_await submissions::being_cancelled();
    answer_exception(std::move(thrown), is_cancelled);
  }
  finish();
  carrier_.wake_writer();
  carrier_.exchange_done(stream_);  // may destroy *this
}

task<> exchange::run_handler_later() {
  if (collects()) {
    while (!progress_.body_ended()) {
      co_await next_encoded();
      request_.collected_ += piece_;
    }
    if (wrong_ != fault::none) throw refused(wrong_);
    unread_.insert(0, request_.collected_);
    request_.collected_.clear();
    static_cast<void>(run_at_once());
    co_return;
  }
  begin_memory();
  try {
    std::optional<task<response>> later = start_handler();
    if (later) {
      answer_ = co_await std::move(*later);
    } else {
      answer_ = response(404);
    }
  } catch (const status_error& e) {
    answer_ = page_of(head_.fields, e.status(), e.detail());
  }
}

void exchange::finish() noexcept {
  handler_ = handler_stage::ended;
  encoder_bytes_ = 0;
  if (is_noted()) [[unlikely]]
    note_end();
  news_.reset();
  report_failure();
}

void exchange::answer_exception(std::exception_ptr thrown, bool is_cancelled) {
  if (trace_.get() != nullptr) [[unlikely]]
    tasks::fail_span(*trace_.get(), thrown);
  bool by_peer = is_cancelled;
  try {
    std::rethrow_exception(thrown);
  } catch (const refused& why) {
    if (!progress_.answer_begun()) return answer(refusal(why.why()));
    by_peer = true;
  } catch (const io_error&) {
    by_peer = by_peer || is_closed();
  } catch (const timed_out&) {
    by_peer = by_peer || progress_.answer_begun();
  } catch (const cancelled&) {
    // the handler stopped because of its request's client_gone(), or with its stream
    by_peer = by_peer || is_closed() || gone_.stop_requested();
  } catch (...) {
  }
  if (!by_peer) failure_ = std::move(thrown);
  if (is_closed()) return;
  if (!progress_.answer_begun() && !by_peer) return answer(response(500));
  carrier_.session().reset(stream_, by_peer ? code::cancel : code::internal_error);
}

// ---- answers ----

void exchange::begin_answer(const response& with, bool has_length, std::uint64_t length,
                            bool has_body) {
  progress_.begin_answer();
  if (!has_body) progress_.end_answer();
  if (is_noted()) [[unlikely]]
    note_status(with.status_);
  header_lines& lines = carrier_.lines();
  lines.clear();
  const std::string_view date = date_line();
  lines.add("date", date.substr(6, date_bytes));
  if (!server_.options.name.empty()) lines.add("server", server_.options.name);
  if (!with.type_.empty()) lines.add("content-type", with.type_.view());
  if (has_length) {
    std::array<char, 20> number;
    char* const end = std::to_chars(number.data(), number.data() + number.size(), length).ptr;
    lines.add("content-length", {number.data(), static_cast<std::size_t>(end - number.data())});
  }
  if (tells_strict_transport(with)) lines.add_lines(server_.strict_transport);
  lines.add_lines(with.fields_);
  carrier_.session().respond(stream_, with.status_, lines, has_body);
  if (with.closes_) carrier_.end_after_this();
}

// Begins an answer that has to wait for nothing.
void exchange::answer(response&& with) {
  answer_ = std::move(with);
  const bool has_body = may_have_body(answer_.status_);
  if (answer_.special_ != nullptr) {
    const file_part& part = answer_.special_->file;
    pending_.resize(static_cast<std::size_t>(part.bytes));
    const bool is_whole = read_file(part, 0, pending_) == part.bytes;
    begin_answer(answer_, has_body, part.bytes, has_body && !silent_ && part.bytes != 0);
    if (progress_.answer_is_whole()) return;
    unsent_ = pending_;
    // The file was shortened in the meantime.
    if (!is_whole) carrier_.session().reset(stream_, code::internal_error);
  } else {
    complete(answer_);
    const std::string_view body = answer_.body();
    begin_answer(answer_, has_body, body.size(), has_body && !silent_ && !body.empty());
    if (progress_.answer_is_whole()) return;
    unsent_ = body;
  }
  progress_.end_answer();
}

std::size_t exchange::more(std::span<char> room, bool& ends) {
  const std::size_t bytes = std::min(room.size(), unsent_.size());
  std::copy_n(unsent_.begin(), bytes, room.begin());
  unsent_.remove_prefix(bytes);
  taking_.came(bytes);
  if (!unsent_.empty()) return bytes;
  ends = progress_.answer_is_whole();
  if (taken_) taken_->set();
  return bytes;
}

// The time of a stream that has nothing to send does not pass: it waits for its handler.
std::chrono::nanoseconds exchange::patience_for_client(std::int64_t now_ns) noexcept {
  const bool is_owed = !is_closed() && (is_sending() || is_done());
  if (!is_owed) {
    sending_since_ns_ = 0;
    taking_ = paced_arrival();
    return for_ever;
  }
  if (sending_since_ns_ != 0) taking_.waited(std::chrono::nanoseconds(now_ns - sending_since_ns_));
  sending_since_ns_ = now_ns;
  const slowest_pace pace{server_.options.body_rate, server_.options.write_time,
                          std::chrono::seconds(0)};
  return taking_.patience(pace);
}

task<> exchange::answer_waiting() {
  if (is_closed()) co_return;
  if (answer_.special_ == nullptr || !must_wait(*answer_.special_)) {
    response result = std::move(answer_);
    answer(std::move(result));
    co_return;
  }
  switch (answer_.special_->answer_kind) {
    case response::special::kind::file:
      co_await send_part();
      break;
    case response::special::kind::streamed:
      co_await send_stream();
      break;
    case response::special::kind::websocket:
      co_await talk();
      break;
  }
}

task<> exchange::send_part() {
  const file_part& part = answer_.special_->file;
  const bool has_body = may_have_body(answer_.status_);
  // The files of folders have no name.
  const bool may_close = part.from.path().empty();
  begin_answer(answer_, has_body, part.bytes, has_body && !silent_ && part.bytes != 0);
  if (progress_.answer_is_whole()) co_return;
  carrier_.wake_writer();
  reopened_file from(std::move(answer_.special_->file.from), may_close);
  if (!is_closed()) progress_.send_in_parts();
  const std::uint64_t sent = co_await send_parts(from, part.offset, part.bytes);
  files_ = 0;
  if (sent != part.bytes) {  // the file was shortened or replaced in the meantime
    carrier_.session().reset(stream_, code::internal_error);
    co_return;
  }
  end_answer();
}

void exchange::end_answer() {
  progress_.end_answer();
  if (is_closed()) return;
  if (unsent_.empty()) return carrier_.session().end_body(stream_);
  carrier_.session().resume(stream_);
}

task<> exchange::send_stream() {
  const std::optional<std::uint64_t> length = answer_.special_->streamed.sent_length();
  const bool may_have = may_have_body(answer_.status_), has_body = may_have && !silent_;
  begin_answer(answer_, may_have && length, length.value_or(0), has_body);
  carrier_.wake_writer();
  if (!has_body) co_return;
  body_writer writer(*this, false, false, length);
  call_end ends;
  if (response::special::is_event_stream(answer_)) ends.follow_server(server_.hurried.get_token());
  ends.follow_client(gone_.get_token());
  task<bool> sending = send_streamed(answer_.special_->streamed, writer, ends);
  const bool is_whole = co_await std::move(sending);
  if (!is_whole) {
    if (!is_closed()) carrier_.session().reset(stream_, code::cancel);
    co_return;
  }
  if (!writer.trailer_lines().empty() && !is_closed()) {
    header_lines behind;
    behind.add_lines(writer.trailer_lines());
    carrier_.session().end_with(stream_, behind);
  }
  end_answer();
}

task<> exchange::talk() {
  websocket_terms terms;
  std::string lines;
  const websocket_options options = answer_.special_->socket;
  const bool asks = is_websocket() && head_.fields["sec-websocket-version"] == "13";
  const std::string why = asks ? accept_terms(head_.fields, options, terms, lines) : "";
  if (!asks || !why.empty()) {
    response plain(asks ? 400 : 426);
    if (asks) plain = response::text(why + "\n").status(400);
    if (!asks) plain.field("Sec-WebSocket-Version", "13");
    answer(std::move(plain));
    co_return;
  }
  response accepted(200);
  accepted.fields_ = lines;
  accepted.fields_ += answer_.fields_;
  websocket_function told = std::move(answer_.special_->talk);
  answer_ = std::move(accepted);
  begin_answer(answer_, false, 0, true);
  carrier_.wake_writer();
  call_end ends;
  ends.follow_server(server_.hurried.get_token());
  ends.follow_client(gone_.get_token());
  const struct talked_over {  // receive() refers to it
    call_end*& at;
    ~talked_over() { at = nullptr; }
  } here{call_};
  call_ = &ends;
  task<> running = websocket_conversation(*this, std::string(), std::move(told), options,
                                          std::move(terms), ends, peer_end());
  co_await std::move(running);
  end_answer();
}

// ---- transport ----

void exchange::throw_gone() const {
  throw io_error("send", "a stream of HTTP/2 whose client has gone", EPIPE);
}

task<> exchange::send(std::string_view bytes) { co_await send_owned(std::string(bytes)); }

// Completes when the session has taken all bytes, which it does when the client has given a window
// for them. If it was the turn of a call that is given up, its bytes are still sent.
task<> exchange::send_owned(std::string bytes) {
  const send_order::turn mine(order_);
  if (!mine.has_come()) {
    const counted_bytes waiting(queued_bytes_, bytes.capacity());
    co_await mine.comes();
  }
  if (!taken_) taken_.emplace();
  bool is_ours = false;
  for (;;) {
    if (is_closed()) throw_gone();
    if (unsent_.empty()) {
      if (is_ours) co_return;
      is_ours = true;
      if (bytes.empty()) co_return;
      pending_ = std::move(bytes);
      unsent_ = pending_;
      if (pending_.capacity() > base::account::slack_bytes) carrier_.keep_to_budget();
      if (is_closed()) throw_gone();
      carrier_.session().resume(stream_);
      carrier_.wake_writer();
    }
    taken_->reset();
    if (unsent_.empty() || is_closed()) continue;
    co_await taken_->wait();
  }
}

task<std::uint64_t> exchange::send_file(const file& from, std::uint64_t offset,
                                        std::uint64_t bytes) {
  reopened_file here(from.share(), false);
  co_return co_await send_parts(here, offset, bytes);
}

// Waits until the client has given a window. Meanwhile the file is closed, and no piece is kept.
task<> exchange::await_window(reopened_file& from) {
  if (!taken_) taken_.emplace();
  while (!is_closed() && carrier_.session().window(stream_) == 0) {
    from.rest();
    files_ = from.is_open() ? 1 : 0;
    taken_->reset();
    carrier_.session().resume(
        stream_);  // so that the session asks for bytes when there is a window
    carrier_.wake_writer();
    co_await taken_->wait();
  }
  if (is_closed()) throw_gone();
}

task<std::uint64_t> exchange::send_parts(reopened_file& from, std::uint64_t offset,
                                         std::uint64_t bytes) {
  constexpr std::uint64_t at_once = 64 * 1024;
  std::uint64_t sent = 0;
  while (sent < bytes) {
    co_await await_window(from);
    if (!from.open()) break;
    files_ = 1;
    // No more than the client takes now, so that a client that takes little holds little.
    const std::uint64_t most = std::min<std::uint64_t>(carrier_.session().window(stream_), at_once);
    std::string piece(static_cast<std::size_t>(std::min(bytes - sent, most)), '\0');
    const std::span<char> room(piece.data(), piece.size());
    const std::size_t came = co_await from.get().read_at(offset + sent, room);
    if (came == 0) break;
    piece.resize(came);
    co_await send_owned(std::move(piece));
    sent += came;
  }
  co_return sent;
}

}  // namespace troupe::http::h2
