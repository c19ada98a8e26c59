#include "http/server/server_state.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "http/behind_proxy/proxy_header.hpp"
#include "http/fields/field_line.hpp"
#include "http/server/live_connection.hpp"
#include "http/server/parked.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {

namespace {

using namespace std::chrono_literals;

// The shortest and the longest time between two searches for late connections.
constexpr std::chrono::nanoseconds sweep_min = 50ms, sweep_max = 1s;
// The search lets others have turns after so many pieces.
constexpr std::size_t pieces_a_turn = 16;
constexpr std::size_t shed_share = 16;
// A trusted proxy sends a head at once. One that has been coming for longer may be ended.
constexpr std::chrono::nanoseconds head_patience = std::chrono::milliseconds(500);

// The default share of one client is this part of a limit, and at least so much.
constexpr std::size_t peers_sharing = 8;
constexpr std::size_t share_bytes_least = 1024 * 1024, share_descriptors_least = 16;

void check(bool holds, const char* requirement) {
  if (!holds) throw option_error(std::string("troupe: http::server_options: ") + requirement);
}

std::string strict_transport_of(const server_options& chosen) {
  if (chosen.strict_transport.count() <= 0) return {};
  std::string line;
  append_field(line, "Strict-Transport-Security",
               "max-age=" + seconds_text(chosen.strict_transport) +
                   (chosen.strict_transport_of_subdomains ? "; includeSubDomains" : ""),
               "server_options");
  return line;
}

// The rest is for the program, and for the connections that are being accepted or turned away.
std::size_t descriptors_of_process() noexcept {
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(most.rlim_cur - most.rlim_cur / peers_sharing);
}

// One client's part of a limit.
std::size_t share_of(std::size_t all, std::size_t chosen, std::size_t least) noexcept {
  return chosen != 0 ? chosen : std::max(all / peers_sharing, least);
}

base::ledger::limits account_limits_of(const server_options& chosen) noexcept {
  base::ledger::limits most;
  most.bytes = chosen.buffer_bytes;
  most.peer_bytes = share_of(most.bytes, chosen.buffer_bytes_per_peer, share_bytes_least);
  most.descriptors = chosen.descriptors != 0 ? chosen.descriptors : descriptors_of_process();
  most.peer_descriptors =
      share_of(most.descriptors, chosen.descriptors_per_peer, share_descriptors_least);
  return most;
}

}  // namespace

server_state::server_state(router table, const server_options& chosen)
    : whole_server(true),
      routes(std::move(table)),
      options(chosen),
      strict_transport(strict_transport_of(chosen)),
      secure(*this, chosen.handshakes),
      lingers(chosen.connections),
      kept(account_limits_of(chosen)) {
  check(options.head_bytes >= 128, "head_bytes is less than 128");
  check(options.head_bytes <= 1 << 30, "head_bytes is more than 1 GiB");
  check(options.fields >= 1, "fields is 0");
  check(options.target_bytes >= 1, "target_bytes is 0");
  check(options.connections >= 1, "connections is 0");
  check(options.connections_per_peer >= 1, "connections_per_peer is 0");
  check(options.handshakes >= 1, "handshakes is 0");
  check(options.strict_transport.count() >= 0, "strict_transport is negative");
  for (const std::chrono::nanoseconds span :
       {options.handshake_time, options.head_time, options.idle_time, options.write_time,
        options.drain_time}) {
    check(span.count() > 0, "a time is not positive");
  }
  check(options.http2.streams >= 1, "http2.streams is 0");
  check(options.http2.span.count() > 0, "http2.span is not positive");
  check(options.http2.stream_window >= 1024 && options.http2.stream_window <= INT32_MAX,
        "http2.stream_window is not between 1 KiB and 2 GiB");
  check(options.proxy_protocol.header_bytes >= proxy_header_least,
        "proxy_protocol.header_bytes is less than 107");
  check(options.proxy_protocol.header_time.count() > 0,
        "proxy_protocol.header_time is not positive");
  check(options.body_grace.count() >= 0, "body_grace is negative");
  check(!has_control(options.name), "name has a line end or another control byte");
  drained.set();
}

bool server_state::admit(const std::string& key, client_peer*& counted) {
  const bool is_welcome = connect(key, counted);
  (is_welcome ? accepted : turned_away).add(1);
  const auto held = lock();
  // order: relaxed  the mutex orders it; others read it as a hint
  if (count_.fetch_add(1, std::memory_order_relaxed) == 0) drained.reset();
  return is_welcome;
}

bool server_state::admit_for(const std::string& key, client_peer*& counted) {
  client_peer* const before = counted;
  const bool is_welcome = connect(key, counted);
  kept.disconnect(*before);
  kept.leave(*before);
  return is_welcome;
}

// A connection that is turned away also takes a descriptor, of no client's share.
bool server_state::connect(const std::string& key, client_peer*& counted) {
  counted = &kept.join(key);
  if (kept.connect(*counted, options.connections_per_peer)) return true;
  kept.leave(*counted);
  counted = &kept.join("");
  static_cast<void>(kept.connect(*counted, options.connections_per_peer));
  return false;
}

void server_state::end_over_budget(live_connection& live) noexcept {
  const auto held = lock();
  end_live(live, connection_ending::over_budget);
}

void server_state::continue_in_budget(live_connection& live) noexcept {
  const auto held = lock();
  live.requested_.renew();
}

void server_state::end_live(live_connection& live, connection_ending why) noexcept {
  if (live.request_end(why)) ended.count(why);
}

void server_state::dismiss(client_peer* counted) noexcept {
  kept.disconnect(*counted);
  kept.leave(*counted);
  const auto held = lock();
  // order: relaxed  as in admit
  if (count_.fetch_sub(1, std::memory_order_relaxed) == 1) drained.set();
  left();
  secure.left();
}

void server_state::enter(live_connection& live) {
  bool start_sweep = false;
  {
    const auto held = lock();
    link(live);
    // stop() has notified the connections that were in the list by then; this one came later.
    if (stopping.stop_requested() && (idle_time_.count() == 0 || live.speaks_h2_))
      end_live(live, all_end_ ? connection_ending::aborted : connection_ending::draining);
    start_sweep = !std::exchange(sweeping_, true);
  }
  if (start_sweep) static_cast<void>(spawn(sweep(shared_from_this())));
}

void server_state::leave(live_connection& live) noexcept {
  const auto held = lock();
  if (live.fd_ >= 0) unlink(live);
}

void server_state::link(live_connection& live) noexcept {
  TROUPE_INVARIANT(live.fd_ < 0, "K1");
  live_.push_front(live);
  live.fd_ = live.wire().fd();
}

void server_state::unlink(live_connection& live) noexcept {
  TROUPE_INVARIANT(live.fd_ >= 0 && live_.contains(live), "K1");
  live_.remove(live);
  live.fd_ = -1;
}

base::list_link<live_connection>& server_state::link_of(live_connection& live) noexcept {
  return live.link_;
}

namespace {

std::atomic<std::size_t> shared_from{sharing_from_default};

}  // namespace

// order: relaxed (both)  set by tests before there is a server
std::size_t sharing_from() noexcept { return shared_from.load(std::memory_order_relaxed); }
void set_sharing_from(std::size_t connections) noexcept {
  shared_from.store(connections, std::memory_order_relaxed);
}

// order: relaxed  a hint
std::size_t server_state::count() const { return count_.load(std::memory_order_relaxed); }

bool server_state::is_full() noexcept {
  // order: relaxed  a hint: the task that accepts checks again
  return count_.load(std::memory_order_relaxed) >= options.connections || kept.is_full();
}

// ---- walks in pieces ----

template <class List>
class server_state::walk {
 public:
  walk(const server_state& server, List& list) : server_(server), list_(list) {
    const auto held = server_.lock();
    list_.begin(at_);
  }
  walk(const walk&) = delete;
  ~walk() {
    const auto held = server_.lock();
    list_.end(at_);
  }

  // Returns false when the walk is over. `look` runs inside the mutex, and returns false to end it.
  template <class Look>
  bool next_piece(Look&& look) {
    bool more = false;
    {
      const std::lock_guard held(server_.mutex_);
      more = list_.next_piece(at_, look);
    }
    server_.turns_.let_in();
    return more;
  }

 private:
  const server_state& server_;
  List& list_;
  typename List::walk at_;
};

template <class List, class Look>
void server_state::for_each(List& list, Look look) const {
  walk through(*this, list);
  const auto at_each = [&look](auto& connection) {
    look(connection);
    return true;
  };
  while (through.next_piece(at_each)) {
  }
}

// In no task: the thread that asks has no time of the runtime's.
std::size_t server_state::count_idle() const {
  std::size_t idle = 0;
  for_each(live_, [&](const live_connection& live) {
    idle += live.clock().phase_now() == connection_clock::phase::idle;
  });
  for_each(parked_, [&](const parked& resting) {
    idle += resting.past.why == connection_ending::none && resting.past.answered_one;
  });
  return idle;
}

void server_state::shed() {
  const std::int64_t now_ns = now().count();
  const auto live_since = [now_ns](const live_connection& live) {
    const std::int64_t since_ns = live.clock().idle_since_ns();
    return connection_clock::is_idle(live.clock().phase_now(), since_ns, now_ns) ? since_ns
                                                                                 : never_ns;
  };
  const auto parked_since = [now_ns](const parked& resting) {
    const auto at =
        resting.past.answered_one ? connection_clock::phase::idle : connection_clock::phase::fresh;
    const bool is_idle = resting.past.why == connection_ending::none &&
                         connection_clock::is_idle(at, resting.since_ns, now_ns);
    return is_idle ? resting.since_ns : never_ns;
  };
  if (shed_oldest(live_since, parked_since)) return;
  // No connection is idle: a client that keeps much makes room.
  if (kept.is_full() && kept.end_largest()) return;
  shed_slow_heads();
}

// Until its head is there, the client of a proxy to which a connection belongs is unknown.
void server_state::shed_slow_heads() {
  const std::int64_t slow_before_ns = now().count() - head_patience.count();
  for_each(live_, [&](live_connection& live) {
    if (live.unnamed_since_ns(options.head_time) <= slow_before_ns)
      end_live(live, connection_ending::shed);
  });
}

void server_state::shed_handshakes() {
  const std::int64_t now_ns = now().count();
  const auto live_since = [now_ns](const live_connection& live) {
    constexpr auto handshake = connection_clock::phase::handshake;
    const std::int64_t since_ns = live.clock().idle_since_ns();
    return live.clock().phase_now() == handshake &&
                   connection_clock::is_idle(handshake, since_ns, now_ns)
               ? since_ns
               : never_ns;
  };
  shed_oldest(live_since, [](const parked&) { return never_ns; });
}

// The functions return the time from which a connection may be ended, or never_ns. Returns false if
// no connection may be ended. One walk finds the time of the last connection to be ended, a second
// walk ends the connections up to that time: connections may come and go between two pieces.
template <class LiveSince, class ParkedSince>
bool server_state::shed_oldest(LiveSince live_since, ParkedSince parked_since) {
  std::vector<std::int64_t> times;
  times.reserve(count());
  const auto keep = [&times](std::int64_t since_ns) {
    if (since_ns != never_ns) times.push_back(since_ns);
  };
  for_each(live_, [&](const live_connection& live) { keep(live_since(live)); });
  for_each(parked_, [&](const parked& resting) { keep(parked_since(resting)); });
  if (times.empty()) return false;
  std::size_t left = (times.size() - 1) / shed_share + 1;
  const auto last = times.begin() + static_cast<std::ptrdiff_t>(left - 1);
  std::nth_element(times.begin(), last, times.end());
  const std::int64_t newest_ns = *last;
  const auto is_next = [&](std::int64_t since_ns) {
    if (since_ns > newest_ns || left == 0) return false;
    --left;
    return true;
  };
  for_each(live_, [&](live_connection& live) {
    if (is_next(live_since(live))) end_live(live, connection_ending::shed);
  });
  for_each(parked_, [&](parked& resting) {
    if (is_next(parked_since(resting))) end_parked(resting, connection_ending::shed);
  });
  return true;
}

void server_state::end_all() noexcept {
  {
    const auto held = lock();
    all_end_ = true;
  }
  for_each(live_, [this](live_connection& live) { end_live(live, connection_ending::aborted); });
  end_parked(connection_ending::aborted);
  ending.request_stop();
  for_each(live_, [](live_connection& live) { live.shut(); });
}

void server_state::revive(live_connection& live) {
  const auto held = lock();
  live.requested_.revive();
}

void server_state::drain(std::chrono::nanoseconds idle_time) {
  if (idle_time.count() <= 0) return stop();
  {
    const auto held = lock();
    if (stopping.stop_requested()) return;
    idle_time_ = idle_time;
  }
  stopping.request_stop();
  accepting.request_stop();
  for_each(live_, [this](live_connection& live) {
    if (live.speaks_h2_) end_live(live, connection_ending::draining);
  });
  for_each(parked_, [this](parked& resting) {
    if (resting.says_end) end_parked(resting, connection_ending::draining);
  });
}

std::chrono::nanoseconds server_state::idle_time() const {
  const auto held = lock();
  return idle_time_;
}

void server_state::speaks_h2(live_connection& live) {
  const auto held = lock();
  live.speaks_h2_ = true;
  if (stopping.stop_requested() && !live.requested_.is_requested())
    end_live(live, connection_ending::draining);
}

void server_state::stop() {
  {
    const auto held = lock();
    idle_time_ = std::chrono::nanoseconds(0);
  }
  hurried.request_stop();
  // Handlers see this request, and each answer from here on announces that it is the last.
  stopping.request_stop();
  accepting.request_stop();
  for_each(live_, [this](live_connection& live) { end_live(live, connection_ending::draining); });
  end_parked(connection_ending::draining);
}

std::int64_t server_state::end_if_late(live_connection& live, std::int64_t now_ns) noexcept {
  const std::int64_t expiry = live.clock().expiry_ns(), parking = live.parking_ns();
  if (expiry <= now_ns) {
    end_live(live, live.clock().phase_now() == connection_clock::phase::streams
                       ? connection_ending::late_stream
                       : connection_ending::late);
  } else if (parking <= now_ns) {
    end_live(live, connection_ending::parking);
  } else {
    return std::min(expiry, parking);
  }
  return never_ns;
}

task<> server_state::sweep(std::shared_ptr<server_state> self) {
  // However this sweep ends, the next one can begin.
  struct guard {
    explicit guard(server_state& runs) noexcept : server(runs) {}
    guard(const guard&) = delete;
    ~guard() {
      if (done) return;
      const auto held = server.lock();
      server.sweeping_ = false;
    }
    server_state& server;
    bool done = false;
  } ended(*self);
  for (;;) {
    {
      const auto held = self->lock();
      if (self->live_.empty() && self->parked_.empty()) {
        self->sweeping_ = false;
        ended.done = true;
        co_return;
      }
    }
    std::int64_t earliest = never_ns;
    const std::int64_t now_ns = now().count();
    {
      walk through(*self, self->parked_);  // the oldest first
      const auto look = [&](parked& resting) {
        earliest = self->end_if_late(resting, now_ns);
        return earliest == never_ns;
      };
      for (std::size_t pieces = 1; through.next_piece(look); ++pieces)
        if (pieces % pieces_a_turn == 0) co_await yield();
    }
    {
      walk through(*self, self->live_);
      const auto look = [&](live_connection& live) {
        earliest = std::min(earliest, self->end_if_late(live, now_ns));
        return true;
      };
      for (std::size_t pieces = 1; through.next_piece(look); ++pieces)
        if (pieces % pieces_a_turn == 0) co_await yield();
    }
    const std::chrono::nanoseconds until(earliest - now_ns);
    co_await sleep_for(std::clamp<std::chrono::nanoseconds>(until, sweep_min, sweep_max)).weak();
  }
}

// ---- connections that wait for their next request keep only their stream ----

// Owned by the task that wakes parked connections. When that task is ended from outside, mostly by
// the end of the runtime, it also ends the parked connections.
class server_state::waker {
 public:
  explicit waker(std::shared_ptr<server_state> server) noexcept : server_(std::move(server)) {}
  waker(waker&&) noexcept = default;
  ~waker() {
    if (server_ != nullptr) server_->end_parked_for_good();
  }
  server_state& of() const noexcept { return *server_; }
  void done() noexcept { server_.reset(); }

 private:
  std::shared_ptr<server_state> server_;
};

bool server_state::park(live_connection& live, parked& resting, stream& over) {
  for (;;) {
    {
      const auto held = lock();
      const bool may = !waker_.is_lost() && live.requested_.may_park();
      if (waker_.exists()) {
        if (may) {
          link(resting);
          // The connection stays in its list until it is parked: walks that have passed the front
          // would not find it there.
          if (resting.begin(over)) {
            unlink(live);
            return true;
          }
          parked_.remove(resting);
        }
        // Otherwise the task would wait for a report that never comes: it may have been started for
        // this very connection, which has been asked to end in the meantime.
        if (parked_.empty()) some_reported_.set();
        return false;
      }
      if (!may) return false;
      waker_.begin();
    }
    try {
      static_cast<void>(spawn(wake(waker(shared_from_this()))));
    } catch (...) {
      const auto held = lock();
      waker_.end();
      throw;
    }
  }
}

bool server_state::unpark(live_connection& live) {
  const auto held = lock();
  return live.requested_.stay();
}

// `resting` may be freed as soon as the mutex is released, and so may the server.
void server_state::report(parked& resting) noexcept {
  std::lock_guard lock(reports_mutex_);
  reported_.push(resting);
  some_reported_.set();
}
void parked::on_arrival(arrival& self) noexcept {
  auto& resting = static_cast<parked&>(self);
  resting.server.report(resting);
}

// Returns the reported connections, those that were reported first in front.
server_state::parked_queue server_state::take_reported() noexcept {
  std::lock_guard lock(reports_mutex_);
  return std::move(reported_);
}

// Lets `taken` have a connection, if any is left: the next piece of `reported` leaves the list.
bool server_state::take_from_list(parked_queue& reported, parked_queue& taken) noexcept {
  if (!taken.empty()) return true;
  if (reported.empty()) return false;
  const auto held = lock();
  for (std::size_t i = 0; i < parked_list::piece_max && !reported.empty(); ++i) {
    parked& resting = *reported.pop();
    TROUPE_INVARIANT(parked_.contains(resting), "K2");
    parked_.remove(resting);
    taken.push(resting);
  }
  return true;
}

task<> server_state::wake(waker own) {
  server_state& self = own.of();
  for (bool some = true; some;) {
    co_await self.some_reported_.wait();
    self.some_reported_.reset();
    parked_queue reported = self.take_reported(), taken;
    while (self.take_from_list(reported, taken)) {
      const std::unique_ptr<parked> resting(taken.pop());
      const connection_ending why = resting->past.why;
      if (why == connection_ending::aborted) continue;
      if (why == connection_ending::late && !resting->says_end) continue;
      try {
        resting->revive();
      } catch (const std::bad_alloc&) {  // the connection is closed
      }
    }
    const auto held = self.lock();
    some = !self.parked_.empty();
    if (!some) self.waker_.end();
  }
  own.done();
}

server_state::parked_list::list server_state::take_parked() noexcept {
  const auto held = lock();
  return parked_.take_all();
}

// No task is left that would take the parked connections. From here on none is parked.
void server_state::end_parked_for_good() noexcept {
  {
    const auto held = lock();
    waker_.lose();
  }
  end_parked(connection_ending::aborted);
  parked_list::list all = take_parked();
  const auto count = static_cast<std::size_t>(std::ranges::distance(all));
  const auto all_reported = [&] {
    const std::lock_guard reports(reports_mutex_);
    return reported_.count() == count;
  };
  // At the end of the runtime no other thread polls for completions: this one does.
  while (!all_reported()) all.first()->owner().drive();
  take_reported();
  while (!all.empty()) {
    const std::unique_ptr<parked> one(all.pop_front());
  }
}

// ---- the parked list, ordered by time; the caller holds the mutex ----

void server_state::link(parked& resting) noexcept {
  parked* older = parked_.last();
  while (older != nullptr && older->since_ns > resting.since_ns)
    older = parked_list::list::previous(*older);
  parked_.insert_after(older, resting);
}

void server_state::end_parked(parked& resting, connection_ending why) noexcept {
  if (resting.past.why != connection_ending::none) return;
  resting.past.why = why;
  ended.count(why);
  resting.end();
}

// Without the mutex.
void server_state::end_parked(connection_ending why) noexcept {
  for_each(parked_, [&](parked& resting) { end_parked(resting, why); });
}

std::int64_t server_state::end_if_late(parked& resting, std::int64_t now_ns) noexcept {
  const std::int64_t expiry =
      options.idle_time.after(std::chrono::nanoseconds(resting.since_ns)).count();
  if (expiry > now_ns) return expiry;
  end_parked(resting, connection_ending::late);
  return never_ns;
}

}  // namespace troupe::http
