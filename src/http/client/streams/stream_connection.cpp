#include "http/client/streams/stream_connection.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"
#include "base/text/release.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {
namespace {

constexpr int interim_max = 16;   // interim answers (1xx) before the final one
constexpr int catch_up_max = 16;  // reads of the bytes that arrived while the connection was parked
// A server that has sent nothing for so long may be gone.
constexpr std::chrono::seconds silence{1};

const char* text_of(h2::excess reason) noexcept {
  switch (reason) {
    case h2::excess::header_list:
      return "too many bytes of fields";
    case h2::excess::resets:
      return "too many resets";
    case h2::excess::continuations:
      return "too many CONTINUATION frames";
    case h2::excess::settings:
      return "too many SETTINGS frames";
    case h2::excess::pings:
      return "too many PING frames";
    case h2::excess::window_updates:
      return "too many WINDOW_UPDATE frames";
    case h2::excess::priorities:
      return "too many PRIORITY frames";
    case h2::excess::empty_data:
      return "too many empty DATA frames";
    case h2::excess::other_frames:
      return "too many frames that say nothing";
    case h2::excess::unread_answers:
      return "it does not read what it asks for";
    default:
      return "frames that break the rules of HTTP/2";
  }
}

}  // namespace

stream_connection::stream_connection(client_resources& core, stream_owner& owner, wire_ptr wire)
    : core_(core),
      owner_(owner),
      origin_(wire->origin),
      wire_(std::move(wire)),
      session_(*wire_->streams) {
  session_.tell(*this);
  core_.holders.add(*this);
}

stream_connection::~stream_connection() { core_.holders.remove(*this); }

asked_stream* stream_connection::find(std::int32_t stream) noexcept {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? nullptr : at->second.get();
}

bool stream_connection::is_over() const noexcept {
  return session_.is_over() || session_.broken() != h2::excess::none;
}

// ---- events of the session, under the mutex ----

void stream_connection::on_asked(std::int32_t stream) {
  if (asked_stream* const exchange = find(stream)) exchange->stage.note_sent();
}

void stream_connection::on_head(std::int32_t stream, h2::head_block&& head, bool ends) {
  asked_stream* const exchange = find(stream);
  if (exchange == nullptr) return;
  if (head.status() < 200) {
    if (++exchange->interim <= interim_max) return;
    fail(*exchange, stream_failure::malformed, "too many interim answers came");
    session_.reset(stream, h2::code::enhance_your_calm);
    return;
  }
  exchange->head.emplace(std::move(head));
  if (ends) exchange->stage.end_answer();
  exchange->news.set();
  count(*exchange);
}

void stream_connection::on_body(std::int32_t stream, std::string_view piece) {
  asked_stream* const exchange = find(stream);
  if (exchange == nullptr) return;
  exchange->unread += piece;
  exchange->news.set();
  count(*exchange);
}

void stream_connection::on_end(std::int32_t stream, h2::head_block&& trailer) {
  asked_stream* const exchange = find(stream);
  if (exchange == nullptr) return;
  exchange->trailer.emplace(std::move(trailer));
  exchange->stage.end_answer();
  exchange->news.set();
  count(*exchange);
}

void stream_connection::on_closed(std::int32_t stream, h2::stream_end how, std::uint32_t why) {
  TROUPE_INVARIANT(places_ != 0 && places_ >= streams_.size(), "S3");
  --places_;
  freed_ = true;
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return;
  const stream_ptr exchange = std::move(at->second);
  streams_.erase(at);
  switch (how) {
    case h2::stream_end::refused:
      if (why == 0)
        return fail(*exchange, stream_failure::moved,
                    "the server ends the connection, and has not handled this request");
      return fail(*exchange, stream_failure::refused, "the server has refused the stream");
    case h2::stream_end::reset:
      return fail(*exchange, stream_failure::reset,
                  "the server has reset the stream (code " + std::to_string(why) + ")");
    case h2::stream_end::malformed:
      return fail(*exchange, stream_failure::malformed, "the answer breaks the rules of HTTP/2");
    case h2::stream_end::complete:
      exchange->stage.close();
      exchange->news.set();
      exchange->sent.set();
  }
}

std::size_t stream_connection::more_of(std::int32_t stream, std::span<char> room, bool& ends) {
  asked_stream* const exchange = find(stream);
  if (exchange == nullptr) return 0;  // its reset is on its way
  const std::size_t bytes = std::min(room.size(), exchange->unsent.size());
  std::copy_n(exchange->unsent.begin(), bytes, room.begin());
  exchange->unsent.remove_prefix(bytes);
  exchange->taken += bytes;
  ends = exchange->is_last && exchange->unsent.empty();
  if (exchange->unsent.empty()) {
    exchange->news.set();
    exchange->sent.set();
  }
  return bytes;
}

// An answer that is complete is good, whatever comes behind it.
void stream_connection::fail(asked_stream& exchange, stream_failure how, std::string why) {
  exchange.stage.close();
  exchange.unsent = {};
  if (!exchange.stage.has_answer() && exchange.failed == stream_failure::none) {
    exchange.failed = how;
    exchange.why = std::move(why);
  }
  exchange.news.set();
  exchange.sent.set();
}

// ---- callers ----

bool stream_connection::reserve() {
  const std::lock_guard lock(mutex_);
  const std::size_t most =
      std::min({core_.options.http2.streams, session_.streams_max(), expected_});
  if (!stage_.takes_requests() || places_ >= most || !session_.takes_requests()) return false;
  ++places_;
  return true;
}

std::optional<std::size_t> stream_connection::streams_max() {
  const std::lock_guard lock(mutex_);
  return said_max_;
}

bool stream_connection::has_said_max() {
  const std::lock_guard lock(mutex_);
  return said_max_ || !stage_.takes_requests();
}

std::optional<bool> stream_connection::allows_connect() {
  const std::lock_guard lock(mutex_);
  if (stage_.is_over()) return false;
  if (!session_.has_settings()) return std::nullopt;
  return session_.allows_connect();
}

void stream_connection::expect(std::size_t streams) {
  const std::lock_guard lock(mutex_);
  expected_ = streams;
}

void stream_connection::give_back_place() {
  const std::lock_guard lock(mutex_);
  if (stage_.is_over()) return;
  --places_;
  to_send_.set();
}

void stream_connection::open(asked_stream& exchange, const stream_ptr& owned,
                             const h2::header_lines& lines, bool has_body) {
  const std::lock_guard lock(mutex_);
  living_.push_back(exchange);
  exchange.is_listed = true;
  // The place may have been reserved before the server announced its limit of streams; a stream
  // beyond the limit would wait for the end of another stream, however long that takes.
  if (!stage_.is_over() && streams_.size() < session_.streams_max())
    exchange.number = session_.request(lines, has_body);
  if (exchange.number == 0) {
    if (!stage_.is_over()) --places_;
    fail(exchange, stream_failure::moved, "the server takes no more requests on this connection");
  } else {
    streams_.emplace(exchange.number, owned);
  }
  to_send_.set();
}

void stream_connection::send(asked_stream& on, std::string_view bytes, bool is_last) {
  on.unsent = bytes;
  on.is_last = is_last;
  if (on.stage.is_closed()) return;
  if (is_last && bytes.empty()) {
    session_.end_body(on.number);
  } else {
    session_.resume(on.number);
  }
  to_send_.set();
}

void stream_connection::end_body(asked_stream& on, const h2::header_lines& trailer) {
  if (!on.stage.is_closed() && trailer.fields().size() != 0) session_.end_with(on.number, trailer);
  send(on, {}, true);
}

void stream_connection::take_body(asked_stream& exchange, std::string& body) {
  body.clear();
  std::swap(body, exchange.unread);
  count(exchange);
  if (body.empty() || exchange.stage.is_over()) return;
  session_.consume(exchange.number, body.size());
  to_send_.set();
}

// ---- kept bytes ----

void stream_connection::count(asked_stream& exchange) {
  const std::size_t heads = (exchange.head ? exchange.head->bytes() : 0) +
                            (exchange.trailer ? exchange.trailer->bytes() : 0);
  exchange.kept.count(
      core_.kept, [this] { return origin_; }, exchange.unread.capacity() + heads);
}

// Called with the ledger's mutex, and maybe with a connection's mutex: the task that keeps more
// frees the bytes behind that (kept_holders::free_ended).
void stream_connection::note_end() noexcept {
  // order: release  before the client's own flag; pairs with free_ended
  ends_streams_.store(true, std::memory_order_release);
  core_.holders.note_end();
}

// Under the mutex. An answer that has arrived whole also ends.
void stream_connection::end_if_asked(asked_stream& exchange) {
  if (exchange.kept.was_ended()) end_kept(exchange);
}

void stream_connection::end_kept(asked_stream& exchange) noexcept {
  if (std::exchange(exchange.is_freed, true)) return;
  base::release(exchange.unread);
  exchange.kept.end();
  if (exchange.failed == stream_failure::none) {
    exchange.failed = stream_failure::kept;
    exchange.why = "too much is kept of answers that were not read, and most of this one";
  }
  exchange.unsent = {};
  exchange.news.set();
  exchange.sent.set();
  if (!exchange.stage.close() || stage_.is_over() || exchange.number == 0) return;
  session_.reset(exchange.number, h2::code::enhance_your_calm);
  streams_.erase(exchange.number);
  to_send_.set();
}

void stream_connection::free_ended() noexcept {
  // order: acquire  pairs with note_end
  if (!ends_streams_.exchange(false, std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  for (asked_stream& exchange : living_) end_if_asked(exchange);
}

void stream_connection::forget(asked_stream& exchange) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(exchange.is_listed, false)) living_.remove(exchange);
}

void stream_connection::doubt(std::chrono::nanoseconds asked_at) {
  const std::lock_guard lock(mutex_);
  if (heard_at_ < asked_at && now() - asked_at >= silence) stage_.leave();
}

void stream_connection::drop(asked_stream& exchange) {
  const std::lock_guard lock(mutex_);
  exchange.unsent = {};
  if (exchange.stage.is_closed() || stage_.is_over() || exchange.number == 0) return;
  exchange.stage.close();
  streams_.erase(exchange.number);
  session_.reset(exchange.number, h2::code::cancel);
  to_send_.set();
}

// ---- the driver ----

task<bool> stream_connection::catch_up(tasks::limits within) {
  try {
    for (int i = 0; wire_->has_news(); ++i) {
      if (i == catch_up_max) co_return false;
      const std::size_t bytes = co_await wire_->receive(within.within(silence));
      if (bytes == 0) co_return false;
      const std::lock_guard lock(mutex_);
      session_.receive(wire_->input(), now().count());
      wire_->consume(wire_->input().size());
    }
  } catch (const timed_out&) {
    if (within.over()) throw;  // else: a part of a record of TLS has arrived
  } catch (const io_error&) {
    co_return false;
  } catch (const tls_error&) {
    co_return false;
  }
  const std::lock_guard lock(mutex_);
  said_max_ = session_.streams_max();  // a kept connection has received it
  co_return session_.takes_requests();
}

void stream_connection::start(std::shared_ptr<client_resources> client) {
  TROUPE_INVARIANT(wire_ != nullptr, "S2");
  static_cast<void>(spawn(drive(std::move(client))));
}

task<> stream_connection::drive(std::shared_ptr<client_resources> client) {
  const std::shared_ptr<client_resources> alive = std::move(client);
  const std::shared_ptr<stream_connection> self = shared_from_this();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      unread_ = false;
      reading_ = std::stop_source();
    }
    const auto body = [this](task_scope& branches) -> task<> {
      branches.spawn(write_all());
      co_await read_all();
    };
    std::string why;
    try {
      co_await scope(body);
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (!why.empty()) lose(std::move(why));
    fail_all();
    if (owner_.retire(*this)) co_return;
  }
}

task<> stream_connection::read_all() {
  std::string why;
  try {
    const std::stop_token end = reading_.get_token();
    for (;;) {
      const tasks::limits until(std::chrono::nanoseconds::max(), end);
      const std::size_t bytes = co_await wire_->receive(until);
      if (bytes == 0) why = "the server has closed the connection";
      if (bytes == 0 || !take_input()) break;
    }
  } catch (const cancelled& e) {
    if (!reading_.stop_requested()) why = e.what();
  } catch (const error& e) {
    why = e.what();
  }
  if (!why.empty()) lose(std::move(why));
  const std::lock_guard lock(mutex_);
  unread_ = true;
  to_send_.set();
}

// Returns false when nothing more is read.
bool stream_connection::take_input() {
  bool goes_on = true, has_place = false;
  {
    const std::lock_guard lock(mutex_);
    heard_at_ = now();
    expected_ = SIZE_MAX;           // its SETTINGS come first
    freed_ = freed_ || !said_max_;  // a further connection may be opened now
    session_.receive(wire_->input(), heard_at_.count());
    wire_->consume(wire_->input().size());
    said_max_ = session_.streams_max();
    if (session_.has_settings()) settings_came_.set();
    if (streams_.size() > session_.streams_max()) refuse_waiting();
    goes_on = !is_over();
    has_place = std::exchange(freed_, false);
    if (!goes_on || places_ == 0 || session_.has_to_send()) to_send_.set();
  }
  if (has_place) tell_freed();
  core_.holders.free_ended();
  return goes_on;
}

task<> stream_connection::write_all() {
  output out;
  for (;;) {
    bool has_place = false, is_done = false;
    {
      const std::lock_guard lock(mutex_);
      out.clear();
      if (lost_.empty()) session_.send(out, write_bytes);
      has_place = std::exchange(freed_, false);
      if (out.empty()) {
        to_send_.reset();
        is_done = unread_ || places_ == 0 || is_over();
      }
    }
    if (has_place) tell_freed();
    if (is_done) break;
    std::string why;
    stream_failure how = stream_failure::lost;
    try {
      if (out.empty()) {
        co_await to_send_.wait();
      } else {
        co_await wire_->send(out.view(), tasks::limits(), core_.options.write_time);
      }
    } catch (const timed_out& e) {
      why = e.what();
      how = stream_failure::stalled;
    } catch (const error& e) {
      why = e.what();
    }
    if (why.empty()) continue;
    lose(std::move(why), how);
    break;
  }
  reading_.request_stop();
}

// The server allows fewer streams than it seemed when these requests were given a place. They look
// for another connection.
void stream_connection::refuse_waiting() {
  for (auto at = streams_.begin(); at != streams_.end();) {
    const stream_ptr exchange = at->second;
    if (!exchange->stage.waits()) {
      ++at;
      continue;
    }
    at = streams_.erase(at);
    fail(*exchange, stream_failure::moved, "the server allows no more requests on this connection");
    session_.reset(exchange->number, h2::code::cancel);
  }
}

void stream_connection::lose(std::string why, stream_failure how) {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) return;
  lost_ = std::move(why);
  how_ = how;
}

// If the connection has ended.
void stream_connection::fail_all() {
  const std::lock_guard lock(mutex_);
  if (lost_.empty() && !is_over()) return;
  // The frames that the session would still send show whether the server broke a rule; they are not
  // sent.
  for (output unsent; session_.send(unsent, write_bytes);) unsent.clear();
  stage_.end();
  const h2::excess broken = session_.broken();
  const bool is_broken = broken != h2::excess::none;
  for (auto& [number, exchange] : streams_) {
    if (is_broken) {
      fail(*exchange, stream_failure::excess, text_of(broken));
    } else {
      fail(*exchange, how_, lost_.empty() ? "the server has ended it" : lost_);
    }
  }
  streams_.clear();
  places_ = 0;
  settings_came_.set();
}

bool stream_connection::retire(wire_ptr& wire, bool& is_good) {
  const std::lock_guard lock(mutex_);
  if (!stage_.is_over() && places_ > 0) return false;
  TROUPE_INVARIANT(wire_ != nullptr, "S2");
  TROUPE_INVARIANT(streams_.empty(), "S3");
  is_good = stage_.takes_requests() && session_.takes_requests();
  stage_.end();
  wire = std::move(wire_);
  return true;
}

}  // namespace troupe::http
