#include "http/h2/conversation.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/invariant.hpp"
#include "http/server/server_connection.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http::h2 {
namespace {

// How long a client that has no requests may take to answer the announcement of the end.
constexpr std::chrono::seconds drain_patience{1};

using phase = connection::phase;
using ending = connection_ending;

server_session::rules rules_of(const server_options& options) {
  return {options.http2, {options.head_bytes, options.fields, options.target_bytes}};
}

std::int64_t after(std::int64_t from_ns, std::chrono::nanoseconds span) noexcept {
  return span.count() > never_ns - from_ns ? never_ns : from_ns + span.count();
}

// The limit may be one of descriptors: a file counts as a good part of memory.
std::size_t size_of(const exchange& request) noexcept {
  return request.kept_bytes() + request.files() * base::account::lease_bytes;
}

}  // namespace

bool is_allowed_cipher(std::string_view name) noexcept {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name.starts_with("TLS_") || ((name.starts_with("ECDHE-") || name.starts_with("DHE-")) &&
                                      (has("GCM") || has("CHACHA20") || has("CCM")));
}

bool is_on(const server_options& options) noexcept {
  return options.http2.is_on && server_session::is_available();
}

conversation::conversation(server_state& server)
    : carrier(server, server_session::make(rules_of(server.options))) {
  session_->tell(*this);
  server_.http2.count(happening::connection);
}

conversation::~conversation() {
  for (auto& [stream, request] : exchanges_) request->forget_handler();
}

// ---- requests between the connection and its handlers ----

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
  const exchange* request = find(stream);
  if (request != nullptr && (request->is_closed() || broken_)) exchanges_.erase(stream);
  if (exchanges_.empty()) all_done_.set();
  if (!broken_ && oldest_kept_back() != nullptr) {  // it may be the oldest now
    give_windows();
    wake_writer();
  }
}

// ---- events of the session ----

bool conversation::on_request(std::int32_t stream, head_block&& head, bool ends) {
  if (exchanges_.size() >= server_.options.http2.streams) {
    server_.http2.count(happening::refused_stream);
    return false;
  }
  server_.http2.count(happening::stream);
  exchanges_.emplace(stream, std::make_unique<exchange>(*this, stream, std::move(head), ends));
  ready_.push_back(stream);
  return true;
}

void conversation::on_body(std::int32_t stream, std::string_view piece) {
  if (exchange* request = find(stream)) request->came(piece);
}

void conversation::on_end(std::int32_t stream, head_block&& trailer) {
  if (exchange* request = find(stream)) request->ended(std::move(trailer));
}

void conversation::on_closed(std::int32_t stream, bool by_peer) {
  if (by_peer) server_.http2.count(happening::reset_stream);
  exchange* request = find(stream);
  if (request == nullptr) return;
  request->closed();
  if (request->is_done()) exchanges_.erase(stream);
}

// The client need not send a body without a reader (RFC 9113, 8.1).
void conversation::on_answered(std::int32_t stream) {
  const exchange* request = find(stream);
  if (request != nullptr && request->is_unread()) session_->stop_upload(stream);
}

std::size_t conversation::more_of(std::int32_t stream, std::span<char> to, bool& ends) {
  exchange* request = find(stream);
  if (request == nullptr) {
    ends = true;
    return 0;
  }
  return request->more(to, ends);
}

void conversation::on_pong() { goaway_.note_answer(); }

// ---- the reader ----

task<bool> conversation::run(connection& on, std::string begun) {
  on_ = &on;
  reader_.begin();
  std::exception_ptr failed;
  const auto body = [&](task_scope& branches) { return read_all(branches, begun, failed); };
  co_await scope(body);
  count_end();
  if (failed != nullptr) std::rethrow_exception(failed);
  room_.reset();
  out_.rest();
  out_at_ = 0;
  count_buffers();
  co_return reader_.parks();
}

// Its exceptions are no reason to cancel handlers: they go another way.
task<> conversation::read_all(task_scope& branches, std::string_view begun,
                              std::exception_ptr& failed) {
  branches.spawn(write_all());
  try {
    co_await take(branches, begun);
    co_await read_on(branches);
    if (reader_.has_client_ended() && !broken_) co_await await_exchanges();
    if (!reader_.parks() && !broken_) co_await flush_at_end();
  } catch (...) {
    failed = std::current_exception();
  }
  reader_.end();
  if (!reader_.parks()) {
    broken_ = true;
    for (auto& [stream, request] : exchanges_) request->closed();
  }
  to_send_.set();
}

task<> conversation::read_on(task_scope& branches) {
  while (!must_end()) {
    watch_time();
    const bool is_idle = exchanges_.empty() && !is_busy();
    const bool something_came = std::exchange(on_->past_.was_parked, false);
    if (is_idle && on_->is_slow() && !something_came) {
      reader_.park();
      co_return;
    }
    if (room_ == nullptr) room_ = std::make_unique_for_overwrite<char[]>(read_bytes);
    count_buffers();
    std::size_t bytes = 0;
    bool is_over = false;
    try {
      bytes = co_await on_->read_wire({room_.get(), read_bytes}, goaway_.is_announced());
    } catch (const cancelled&) {
      is_over = true;
    }
    if (is_over) {
      if (!ask_why()) co_return;
      co_await flush_soon();
      co_await yield();  // calls that were ended have a turn now, in which they free their memory
      continue;
    }
    if (bytes == 0) {
      reader_.note_client_end();
      co_return;
    }
    if (is_idle && on_->is_slow()) ++on_->past_.pace;
    co_await take(branches, {room_.get(), bytes});
  }
}

// Some bytes have arrived.
task<> conversation::take(task_scope& branches, std::string_view bytes) {
  const std::int64_t now_ns = now().count();
  session_->receive(bytes, now_ns);
  if (!session_->is_inside()) {
    inside_since_ns_ = 0;
  } else if (inside_since_ns_ == 0) {
    inside_since_ns_ = now_ns;
  }
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    exchange* request = find(ready_[i]);
    if (request == nullptr) continue;
    if (!request->begin()) {
      branches.spawn(request->serve());
    } else if (request->is_closed()) {
      exchanges_.erase(ready_[i]);
    } else if (request->kept_bytes() > base::account::lease_bytes) {
      keep_to_budget();  // a hundred requests may have arrived at once
    }
    on_->past_.answered_one = true;
  }
  ready_.clear();
  give_windows();
  if (goaway_.is_answered() && goaway_.begin_last()) session_->end();
  co_await flush_soon();
}

// The read was ended. Returns false when the connection is to end.
bool conversation::ask_why() {
  if (broken_ || session_->is_over()) return false;
  const ending why = on_->requested_.why();
  switch (why) {
    case ending::parking:
      if (exchanges_.empty() && !is_busy()) {
        reader_.park();
        return false;
      }
      if (server_.unpark(*on_)) return true;
      return ask_why();
    case ending::draining:
      if (goaway_.is_announced()) return false;
      drain();
      return true;
    case ending::late:
    case ending::shed: {
      server_.revive(*on_);
      const bool is_idle = exchanges_.empty() && inside_since_ns_ == 0;
      session_->terminate(is_idle ? code::no_error : code::enhance_your_calm);
      return false;
    }
    case ending::late_stream:
      server_.continue_in_budget(*on_);
      end_late_streams();
      return true;
    case ending::over_budget:
      server_.continue_in_budget(*on_);
      return end_streams();
    case ending::none:
      // A stream has ended others for the budget before the reader, whose read was ended for it,
      // had its turn.
      if (std::exchange(renewed_, false)) return true;
      break;
    case ending::aborted:
      break;
  }
  broken_ = why == ending::aborted;
  return false;
}

bool conversation::must_end() const noexcept { return broken_ || session_->is_over(); }

void conversation::drain() {
  goaway_.announce();
  session_->announce_end();
}

void conversation::end_after_this() {
  if (goaway_.begin_last()) session_->end();
}

// Whether there is something to do beside requests.
bool conversation::is_busy() const noexcept {
  return writes_.is_under_way() || out_at_ < out_.size() || inside_since_ns_ != 0 ||
         goaway_.is_announced();
}

// The client has ended its half: it still reads the answers, perhaps.
task<> conversation::await_exchanges() {
  for (auto& [stream, request] : exchanges_) request->cut(server_.options.half_close_is_gone);
  while (!exchanges_.empty() && !broken_) {
    fail_blocked();
    all_done_.reset();
    watch_time();
    wake_writer();
    if (exchanges_.empty()) break;
    bool is_over = false;
    try {
      co_await all_done_.wait().stop(on_->requested_.busy_token());
    } catch (const cancelled&) {
      is_over = true;
    }
    if (is_over) broken_ = true;
  }
}

// ---- the writer ----

// Takes from the session the bytes that are to be sent. Returns whether there are bytes.
bool conversation::fill(std::size_t most) {
  if (out_at_ == out_.size()) {
    out_.clear();
    out_at_ = 0;
    has_more_ = session_->send(out_, most);
  }
  return out_at_ < out_.size();
}

// Writes the pending bytes; the caller has begun to write. Errors end the connection.
task<> conversation::write_pending() {
  try {
    while (fill(write_bytes)) {
      TROUPE_INVARIANT(writes_.is_under_way(), "C1");
      watch_time();
      note_written(co_await on_->write_wire(out_.view().substr(out_at_)));
    }
  } catch (const error&) {  // the client has disconnected, or is too slow
    break_off();
  }
  static_cast<void>(writes_.end());
}

// Called by the reader: small answers are sent at once, and larger ones by the writer.
task<> conversation::flush_soon() {
  if (writes_.is_under_way() || broken_) co_return;
  if (!fill(quick_bytes)) co_return;
  note_written(on_->write_wire_at_once(out_.view().substr(out_at_)));
  bool was_woken = false;
  if (on_->secure() && out_.size() <= 2 * quick_bytes) {
    writes_.begin();
    try {
      while (out_at_ < out_.size()) {
        watch_time();
        note_written(co_await on_->write_wire(out_.view().substr(out_at_)));
      }
    } catch (const error&) {
      break_off();
    }
    was_woken = writes_.end();
  }
  if (was_woken || has_more_ || out_at_ < out_.size()) wake_writer();
}

task<> conversation::write_all() {
  for (;;) {
    co_await to_send_.wait();
    to_send_.reset();
    if (reader_.has_ended()) co_return;
    writes_.note_more();
    if (writes_.is_under_way() || broken_) continue;
    writes_.begin();
    co_await write_pending();
    if (reader_.has_client_ended()) fail_blocked();
    if (exchanges_.empty()) all_done_.set();
    watch_time();
    count_buffers();
    // The reader waits for bytes that no client will send.
    if (session_->is_over()) on_->requested_.stop();
  }
}

// GOAWAY, and the other frames that remain.
task<> conversation::flush_at_end() {
  if (!session_->is_over() && !reader_.has_client_ended()) session_->terminate(code::no_error);
  while (writes_.is_under_way() && !broken_) {
    all_done_.reset();
    co_await all_done_.wait();
  }
  if (broken_) co_return;
  writes_.begin();
  co_await write_pending();
  on_->closing_.linger();
}

void conversation::break_off() noexcept {
  broken_ = true;
  on_->health_.break_off();
  all_done_.set();
  for (auto& [stream, request] : exchanges_) request->closed();
  on_->requested_.stop();
}

// No window will come any more.
void conversation::fail_blocked() noexcept {
  if (writes_.is_under_way() || out_at_ < out_.size()) return;
  for (auto at = exchanges_.begin(); at != exchanges_.end();) {
    exchange& request = *at->second;
    const bool is_blocked = request.is_sending() || (request.is_done() && !request.is_closed());
    if (is_blocked) request.closed();
    at = is_blocked && request.is_done() ? exchanges_.erase(at) : std::next(at);
  }
}

// ---- limits ----

// Windows for bodies that are collected. Beyond the limit only the oldest request may send on, so
// that one of them always comes to its end.
void conversation::give_windows() {
  exchange* const oldest = oldest_kept_back();
  if (oldest == nullptr) return;
  std::size_t collected = 0;
  for (auto& [stream, request] : exchanges_) collected += request->collected();
  const bool is_full = collected > server_.options.http2.collected_bytes;
  for (auto& [stream, request] : exchanges_) {
    if (!request->is_kept_back()) continue;
    const bool may_send =
        request.get() == oldest || (has_room(*request) && !(is_full && request->is_collecting()));
    if (may_send) session_->consume(stream, request->take_kept_back());
  }
}

// A body that is collected for a handler waits for its client even while nothing of it is kept
// back.
exchange* conversation::oldest_kept_back() noexcept {
  exchange* oldest = nullptr;
  for (auto& [stream, request] : exchanges_) {
    const bool waits =
        request->is_kept_back() || (request->is_collecting() && !request->is_closed());
    if (waits && (oldest == nullptr || stream < oldest->stream())) oldest = request.get();
  }
  return oldest;
}

// Whether the client may keep the bytes of another window.
bool conversation::has_room(exchange& request) noexcept {
  return account_of(request).room() >=
         server_.options.http2.stream_window + base::account::lease_bytes;
}

const base::account& conversation::account_of(exchange& request) noexcept {
  const base::account* const own = request.account();
  return own != nullptr ? *own : on_->account_;
}

bool conversation::reserve(exchange& request, std::size_t bytes) noexcept {
  if (is_from_proxy()) request.count_for_client();
  count_buffers();
  return account_of(request).has_spare(bytes);
}

void conversation::give_window(exchange& request) {
  if (!has_room(request) && oldest_kept_back() != &request) return;
  session_->consume(request.stream(), request.take_kept_back());
  wake_writer();
}

bool conversation::is_from_proxy() const noexcept {
  return !on_->client_.has_share && !server_.options.trusted_proxies.empty();
}

void conversation::end_streams_soon() noexcept { server_.end_over_budget(*on_); }

void conversation::keep_to_budget() {
  count_buffers();
  if (on_->requested_.why() != ending::over_budget) return;
  server_.continue_in_budget(*on_);
  renewed_ = true;
  static_cast<void>(end_streams());  // at its end the session is over
  wake_writer();
}

// Ends streams whose client is over its budget, and if the connection's client is, the largest ones
// until a good part is free. Returns false when the connection itself is to end.
bool conversation::end_streams() {
  constexpr std::size_t least = base::account::lease_bytes;
  std::size_t freed = 0;
  for (auto& [stream, request] : exchanges_) {
    if (request->is_closed() || !request->is_over_budget()) continue;
    freed += request->kept_bytes();
    end_stream(stream, *request);
  }
  count_buffers();
  const bool is_over = on_->account_.is_ending();
  while (is_over && freed < least) {
    const auto largest = std::ranges::max_element(exchanges_, {}, [](const auto& entry) {
      return entry.second->is_closed() || entry.second->account() != nullptr
                 ? 0
                 : size_of(*entry.second);
    });
    const bool is_open = largest != exchanges_.end() && !largest->second->is_closed();
    const bool has_files = is_open && largest->second->files() != 0;
    if (on_->account_.leased() <= least && !has_files) break;
    if (!is_open) {
      session_->terminate(code::enhance_your_calm);
      return false;
    }
    freed += size_of(*largest->second);
    end_stream(largest->first, *largest->second);
  }
  count_buffers();
  if (is_over) on_->account_.stay();
  return true;
}

// A client that does not take one answer loses that answer only.
void conversation::end_late_streams() {
  const std::int64_t now_ns = now().count();
  for (auto& [stream, request] : exchanges_) {
    if (request->patience_for_client(now_ns).count() <= 0) end_stream(stream, *request);
  }
}

void conversation::end_stream(std::int32_t number, exchange& request) {
  session_->reset(number, code::enhance_your_calm);
  request.give_up();
}

// How long the connection may continue its present wait.
void conversation::watch_time() noexcept {
  connection& on = *on_;
  const std::int64_t now_ns = now().count();
  const server_options& options = server_.options;
  std::int64_t until = never_ns;
  if (inside_since_ns_ != 0) until = after(inside_since_ns_, options.head_time);
  const bool is_sending = out_at_ < out_.size();
  if (!is_sending || written_ != written_before_) progress_ns_ = now_ns;
  written_before_ = written_;
  if (is_sending) until = std::min(until, after(progress_ns_, options.write_time));
  bool is_of_stream = false;
  for (auto& [stream, request] : exchanges_) {
    const std::int64_t stream_until = after(now_ns, request->patience_for_client(now_ns));
    is_of_stream = is_of_stream || stream_until < until;
    until = std::min(until, stream_until);
  }
  const bool is_idle = exchanges_.empty() && !is_sending && inside_since_ns_ == 0;
  if (is_idle && !goaway_.is_announced()) {
    on.clock_.begin_idle(on.past_.answered_one ? phase::idle : phase::fresh, options.idle_time,
                         now_ns);
    return;
  }
  if (goaway_.is_announced() && exchanges_.empty())
    until = std::min(until, after(now_ns, drain_patience));
  if (until == never_ns) return on.clock_.end_wait();
  phase waits_in = inside_since_ns_ != 0 ? phase::head : phase::busy;
  if (is_of_stream) waits_in = phase::streams;
  on.clock_.begin_wait(waits_in, std::chrono::nanoseconds(until - now_ns), now_ns);
}

void conversation::count_buffers() noexcept {
  std::size_t bytes =
      (room_ == nullptr ? 0 : read_bytes) + out_.capacity() + lines_.bytes() + session_->memory();
  std::size_t files = 0;
  for (auto& [stream, request] : exchanges_) {
    const std::size_t own = request->kept_bytes(), own_files = request->files();
    if ((own > base::account::slack_bytes || own_files != 0) && is_from_proxy()) [[unlikely]]
      request->count_for_client();
    if (base::account* const account = request->account()) {
      account->hold(own, own_files);
    } else {
      bytes += own;
      files += own_files;
    }
  }
  on_->account_.hold(bytes, files);
}

// Counts the limit that the client has exceeded, once.
void conversation::count_end() noexcept {
  if (session_->broken() == counted_) return;
  counted_ = session_->broken();
  server_.http2.count(counted_);
}

}  // namespace troupe::http::h2
