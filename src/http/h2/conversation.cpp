#include "http/h2/conversation.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "http/server/connection.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http::h2 {
namespace {

// How long a client that has no requests may take to answer the announcement of the end.
constexpr std::chrono::seconds drain_patience{1};

using phase = connection::phase;
using ending = connection_ending;

session::rules rules_of(const server_options& options) {
  return {options.http2, {options.head_bytes, options.fields, options.target_bytes}};
}

std::int64_t after(std::int64_t from_ns, std::chrono::nanoseconds span) noexcept {
  return span.count() > never_ns - from_ns ? never_ns : from_ns + span.count();
}

}  // namespace

bool is_allowed_cipher(std::string_view name) noexcept {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name.starts_with("TLS_") || ((name.starts_with("ECDHE-") || name.starts_with("DHE-")) &&
                                      (has("GCM") || has("CHACHA20") || has("CCM")));
}

bool is_on(const server_options& options) noexcept {
  return options.http2.is_on && session::is_available();
}

conversation::conversation(server_state& in)
    : in_(in), session_(session::make(rules_of(in.options))) {
  session_->tell(*this);
  in_.http2.count(happening::connection);
}

conversation::~conversation() {
  // order: relaxed  a count, read as a hint
  in_.buffered.fetch_sub(counted_, std::memory_order_relaxed);
}

// ---- who asks for what ----

endpoint conversation::peer() { return on_->peer(); }
bool conversation::has_address() const noexcept { return on_->has_address(); }
bool conversation::secure() const noexcept { return on_->secure(); }
std::optional<tls_certificate> conversation::client_certificate() {
  return on_->client_certificate();
}

exchange* conversation::find(std::int32_t stream) noexcept {
  const auto at = exchanges_.find(stream);
  return at == exchanges_.end() ? nullptr : at->second.get();
}

void conversation::exchange_done(std::int32_t stream) {
  const exchange* one = find(stream);
  if (one != nullptr && (one->is_closed() || broken_)) exchanges_.erase(stream);
  if (exchanges_.empty()) all_done_.set();
}

// ---- events of the session ----

bool conversation::on_request(std::int32_t stream, head_block&& head, bool ends) {
  if (exchanges_.size() >= in_.options.http2.streams) {
    in_.http2.count(happening::refused_stream);
    return false;
  }
  in_.http2.count(happening::stream);
  exchanges_.emplace(stream, std::make_unique<exchange>(*this, stream, std::move(head), ends));
  ready_.push_back(stream);
  return true;
}

void conversation::on_body(std::int32_t stream, std::string_view piece) {
  if (exchange* one = find(stream)) one->came(piece);
}

void conversation::on_end(std::int32_t stream, head_block&& trailer) {
  if (exchange* one = find(stream)) one->ended(std::move(trailer));
}

void conversation::on_closed(std::int32_t stream, bool by_peer) {
  if (by_peer) in_.http2.count(happening::reset_stream);
  exchange* one = find(stream);
  if (one == nullptr) return;
  one->closed();
  if (one->is_done()) exchanges_.erase(stream);
}

// The client need not send what nobody reads (RFC 9113, 8.1).
void conversation::on_answered(std::int32_t stream) {
  const exchange* one = find(stream);
  if (one != nullptr && one->is_unread()) session_->stop_upload(stream);
}

std::size_t conversation::more_of(std::int32_t stream, std::span<char> to, bool& ends) {
  progress_ns_ = now().count();
  exchange* one = find(stream);
  if (one == nullptr) {
    ends = true;
    return 0;
  }
  return one->more(to, ends);
}

void conversation::on_pong() { is_heard_ = draining_; }

// ---- the reader ----

task<bool> conversation::run(connection& on, std::string begun) {
  on_ = &on;
  parks_ = ends_ = writing_ = false;
  std::exception_ptr failed;
  const auto body = [&](task_scope& in) { return read_all(in, begun, failed); };
  co_await scope(body);
  count_end();
  if (failed != nullptr) std::rethrow_exception(failed);
  room_.reset();
  out_.rest();
  out_at_ = 0;
  count_buffers();
  co_return parks_;
}

// What it throws is no reason to cancel handlers, so it goes another way.
task<> conversation::read_all(task_scope& in, std::string_view begun, std::exception_ptr& failed) {
  in.spawn(write_all());
  try {
    co_await take(in, begun);
    co_await read_on(in);
    if (at_end_ && !broken_) co_await await_exchanges();
    if (!parks_ && !broken_) co_await flush_at_end();
  } catch (...) {
    failed = std::current_exception();
  }
  ends_ = true;
  if (!parks_) {
    broken_ = true;
    for (auto& [stream, one] : exchanges_) one->closed();
  }
  to_send_.set();
}

task<> conversation::read_on(task_scope& in) {
  while (!must_end()) {
    watch_time();
    const bool is_idle = exchanges_.empty() && !is_busy();
    const bool something_came = std::exchange(on_->past_.was_parked, false);
    if (is_idle && on_->is_slow() && !something_came) {
      parks_ = true;
      co_return;
    }
    if (room_ == nullptr) room_ = std::make_unique_for_overwrite<char[]>(read_bytes);
    count_buffers();
    std::size_t bytes = 0;
    bool is_over = false;
    try {
      bytes = co_await on_->read_wire({room_.get(), read_bytes}, draining_);
    } catch (const cancelled&) {
      is_over = true;
    }
    if (is_over) {
      if (!ask_why()) co_return;
      co_await flush_soon();
      continue;
    }
    if (bytes == 0) {
      at_end_ = true;
      co_return;
    }
    if (is_idle && on_->is_slow()) ++on_->past_.pace;
    co_await take(in, {room_.get(), bytes});
  }
}

// Some bytes have come.
task<> conversation::take(task_scope& in, std::string_view bytes) {
  const std::int64_t now_ns = now().count();
  session_->receive(bytes, now_ns);
  if (!session_->is_inside()) {
    inside_since_ns_ = 0;
  } else if (inside_since_ns_ == 0) {
    inside_since_ns_ = now_ns;
  }
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    exchange* one = find(ready_[i]);
    if (one == nullptr) continue;
    if (!one->begin()) {
      in.spawn(one->serve());
    } else if (one->is_closed()) {
      exchanges_.erase(ready_[i]);
    }
    on_->past_.answered_one = true;
  }
  ready_.clear();
  give_windows();
  if (is_heard_ && !std::exchange(is_last_, true)) session_->end();
  co_await flush_soon();
}

// The read was ended. Returns false when the connection is to end.
bool conversation::ask_why() {
  if (broken_ || session_->is_over()) return false;
  // order: acquire  pairs with connection::end/release
  const ending why = on_->ending_.load(std::memory_order_acquire);
  switch (why) {
    case ending::parking:
      parks_ = exchanges_.empty() && !is_busy();
      if (parks_) return false;
      if (in_.unpark(*on_)) return true;
      return ask_why();
    case ending::draining:
      if (draining_) return false;
      drain();
      return true;
    case ending::late:
    case ending::shed: {
      in_.revive(*on_);
      const bool is_idle = exchanges_.empty() && inside_since_ns_ == 0;
      session_->terminate(is_idle ? code::no_error : code::enhance_your_calm);
      return false;
    }
    case ending::none:
    case ending::aborted:
      break;
  }
  broken_ = why == ending::aborted;
  return false;
}

bool conversation::must_end() const noexcept { return broken_ || session_->is_over(); }

void conversation::drain() {
  draining_ = true;
  session_->announce_end();
  for (auto& [stream, one] : exchanges_) one->stop_talking();
}

void conversation::end_after_this() {
  draining_ = true;
  if (!std::exchange(is_last_, true)) session_->end();
}

// Whether there is something to do beside requests.
bool conversation::is_busy() const noexcept {
  return writing_ || out_at_ < out_.size() || inside_since_ns_ != 0 || draining_;
}

// The client has ended its half: it still reads the answers, perhaps.
task<> conversation::await_exchanges() {
  if (in_.options.half_close_is_gone) {
    for (auto& [stream, one] : exchanges_) one->gone();
  }
  while (!exchanges_.empty() && !broken_) {
    fail_blocked();
    all_done_.reset();
    watch_time();
    wake_writer();
    if (exchanges_.empty()) break;
    bool is_over = false;
    try {
      co_await all_done_.wait().stop(on_->busy_stop_.get_token());
    } catch (const cancelled&) {
      is_over = true;
    }
    if (is_over) broken_ = true;
  }
}

// ---- the writer ----

// Takes from the session what is to be sent. Returns whether there are bytes.
bool conversation::fill(std::size_t most) {
  if (out_at_ == out_.size()) {
    out_.clear();
    out_at_ = 0;
    has_more_ = session_->send(out_, most);
  }
  return out_at_ < out_.size();
}

// Writes what is pending; the caller has set `writing_`. Errors end the connection.
task<> conversation::write_pending() {
  try {
    while (fill(write_bytes)) {
      watch_time();
      out_at_ += co_await on_->write_wire(out_.view().substr(out_at_));
    }
  } catch (const error&) {  // the client has gone, or is too slow
    break_off();
  }
  writing_ = false;
}

// Called by the reader: small answers are sent at once, and larger ones by the writer.
task<> conversation::flush_soon() {
  if (writing_ || broken_) co_return;
  if (!fill(quick_bytes)) co_return;
  out_at_ += on_->write_wire_at_once(out_.view().substr(out_at_));
  if (on_->secure() && out_.size() <= 2 * quick_bytes) {
    writing_ = true;
    try {
      while (out_at_ < out_.size())
        out_at_ += co_await on_->write_wire(out_.view().substr(out_at_));
    } catch (const error&) {
      break_off();
    }
    writing_ = false;
  }
  const bool was_woken = std::exchange(woken_in_write_, false);
  if (was_woken || has_more_ || out_at_ < out_.size()) wake_writer();
}

task<> conversation::write_all() {
  for (;;) {
    co_await to_send_.wait();
    to_send_.reset();
    if (ends_) co_return;
    woken_in_write_ = writing_;
    if (writing_ || broken_) continue;
    writing_ = true;
    co_await write_pending();
    if (at_end_) fail_blocked();
    if (exchanges_.empty()) all_done_.set();
    watch_time();
    // The reader waits for bytes that nobody will send.
    if (session_->is_over()) on_->busy_stop_.request_stop(), on_->idle_stop_.request_stop();
  }
}

// GOAWAY, and what else is left to be said.
task<> conversation::flush_at_end() {
  if (!session_->is_over() && !at_end_) session_->terminate(code::no_error);
  while (writing_ && !broken_) {
    all_done_.reset();
    co_await all_done_.wait();
  }
  if (broken_) co_return;
  writing_ = true;
  co_await write_pending();
  on_->lingers_ = true;
}

void conversation::break_off() noexcept {
  broken_ = true;
  on_->broken_ = true;
  all_done_.set();
  for (auto& [stream, one] : exchanges_) one->closed();
  on_->idle_stop_.request_stop();
  on_->busy_stop_.request_stop();
}

// No window will come any more.
void conversation::fail_blocked() noexcept {
  if (writing_ || out_at_ < out_.size()) return;
  for (auto at = exchanges_.begin(); at != exchanges_.end();) {
    exchange& one = *at->second;
    const bool is_blocked = one.is_sending() || (one.is_done() && !one.is_closed());
    if (is_blocked) one.closed();
    at = is_blocked && one.is_done() ? exchanges_.erase(at) : std::next(at);
  }
}

// ---- limits ----

// Windows for bodies that are collected. Beyond the limit only the oldest request may send on, so
// that one of them always comes to its end.
void conversation::give_windows() {
  exchange* oldest = nullptr;
  std::int32_t oldest_stream = 0;
  std::size_t collected = 0, decoders = 0;
  for (auto& [stream, one] : exchanges_) {
    collected += one->collected();
    decoders += one->decoder_memory();
    if (one->is_collecting() && (oldest == nullptr || stream < oldest_stream)) {
      oldest = one.get();
      oldest_stream = stream;
    }
  }
  body_bytes_ = collected + decoders;
  if (oldest == nullptr) return;
  const bool is_full = collected > in_.options.http2.collected_bytes;
  for (auto& [stream, one] : exchanges_) {
    if (!one->is_collecting() || (is_full && one.get() != oldest)) continue;
    if (const std::size_t bytes = one->take_kept_back(); bytes != 0)
      session_->consume(stream, bytes);
  }
}

// How long the connection may wait for what it waits for now.
void conversation::watch_time() noexcept {
  connection& on = *on_;
  const std::int64_t now_ns = now().count();
  const server_options& options = in_.options;
  std::int64_t until = never_ns;
  if (inside_since_ns_ != 0) until = after(inside_since_ns_, options.head_time);
  const bool is_sending =
      out_at_ < out_.size() ||
      // One that is done waits for the client, too: to take the rest, or to stop its request.
      std::ranges::any_of(exchanges_, [](const auto& one) {
        return one.second->is_sending() || one.second->is_done();
      });
  if (!is_sending) progress_ns_ = now_ns;
  if (is_sending) until = std::min(until, after(progress_ns_, options.write_time));
  const bool is_idle = exchanges_.empty() && !is_sending && inside_since_ns_ == 0;
  if (is_idle && !draining_) {
    // order: relaxed  a hint for the sweep
    on.idle_since_ns_.store(now_ns, std::memory_order_relaxed);
    on.begin_wait(on.past_.answered_one ? phase::idle : phase::fresh, options.idle_time, now_ns);
    return;
  }
  if (draining_ && exchanges_.empty()) until = std::min(until, after(now_ns, drain_patience));
  if (until == never_ns) return on.end_wait();
  on.begin_wait(inside_since_ns_ != 0 ? phase::head : phase::busy,
                std::chrono::nanoseconds(until - now_ns), now_ns);
}

void conversation::count_buffers() noexcept {
  const std::size_t has = (room_ == nullptr ? 0 : read_bytes) + out_.capacity() + body_bytes_;
  if (has == counted_) return;
  // order: relaxed  a count, read as a hint; a negative difference wraps around
  in_.buffered.fetch_add(has - counted_, std::memory_order_relaxed);
  counted_ = has;
}

// Counts what the client has done too much, once.
void conversation::count_end() noexcept {
  if (session_->broken() == excess::none || !std::exchange(counts_end_, false)) return;
  in_.http2.count(session_->broken());
}

}  // namespace troupe::http::h2
