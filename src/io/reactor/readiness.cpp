// The backend over epoll, and over a simulated kernel. It tries each operation at once, and tries
// it again when the system reports that something has changed.
//
// A leased read holds a buffer from the moment when it is done until its coroutine has had its
// turn. While many buffers are leased, a further leased read is not tried when its socket becomes
// readable. Instead it is notified as due, and tried in the turn of its coroutine. Buffers are
// therefore not leased faster than they are used.
// Rejected: doing so always, which makes the row io/echo_64 3 % slower (a read after a read is
// faster than a read after a write); doing so for reads without a lease.
//
// Shards: where more than 16 workers share the reactor, its descriptors are divided into sets, one
// for each 16 workers, since a set has a mutex that each event and each look takes. The thread that
// sleeps inside sleeps for all sets and the bell, by poll(2). A look into one set does not pass
// through the door, and needs none: the kernel gives each event to one thread. A flag turns back a
// second thread that looks into the same set, for it would wait for the mutex.
// Rejected: a bell and a sleeper for each set, for one idle worker could not sleep for all of them
// (P10); a set of these sets, for each event would take its lock as well, each added descriptor a
// mutex of the whole system, and one open file could be added 500 times at most; a set for each
// worker, for a descriptor would be served where it was opened, and not where there is time.
// Invariants
//   R1  an operation that is due is the first of its queue, or was taken out by abandon(). Only its
//       turn makes it not due.
//   R2  an operation is notified once each time it becomes due, and of nothing else: its frame
//       waits for that.
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/atomics.hpp"
#include "base/invariant.hpp"
#include "base/mix_bits.hpp"
#include "io/reactor/attempt.hpp"
#include "io/reactor/attempt_stream.hpp"
#include "io/reactor/make_reactor.hpp"
#include "io/reactor/reactor.hpp"
#include "troupe/io/error.hpp"

namespace troupe::io {
namespace {

std::atomic<unsigned> leases_ahead{leases_ahead_most};

// The most events of one look. A busy worker takes fewer events than it runs turns until its next
// look. With more, turns would queue up, and by the time they run, their data would have left the
// processor's caches (io/echo_10k: 64 cost 8 % more than 16; 8 are as good).
constexpr int events_max = 64, events_beside_turns = 16;
static_assert(events_max <= sched::fetched_events::room);

constexpr std::uint32_t interests = EPOLLIN | EPOLLOUT | EPOLLRDHUP;

// A tag for epoll: the address of a slot, and its generation in the upper 16 bits, which addresses
// in user space do not use.
constexpr int generation_shift = 48;
std::uint64_t tag_of(const slot& at) noexcept {
  return reinterpret_cast<std::uintptr_t>(&at) | std::uint64_t{at.generation} << generation_shift;
}
slot* slot_of(std::uint64_t tag) noexcept {
  return reinterpret_cast<slot*>(tag & ((std::uint64_t{1} << generation_shift) - 1));
}
std::uint16_t generation_of(std::uint64_t tag) noexcept {
  return static_cast<std::uint16_t>(tag >> generation_shift);
}

class readiness_reactor final : public reactor {
 public:
  // `own`: the kernel, if it belongs to this reactor alone.
  readiness_reactor(kernel& calls, std::unique_ptr<kernel> own, sched::runtime_host& host,
                    unsigned shards)
      : reactor(calls, host), own_(std::move(own)), shards_(shards) {
    try {
      for (shard& part : shards_) part.set = checked("epoll_create1", calls.make_set());
      bell_ = checked("eventfd", calls.make_bell());
      if (shards_.size() == 1)
        checked("epoll_ctl", calls.add(shards_.front().set, bell_, EPOLLIN, bell_tag));
      for (const shard& part : shards_) waited_for_.push_back({part.set, POLLIN, 0});
      waited_for_.push_back({bell_, POLLIN, 0});
    } catch (...) {
      close_all();
      throw;
    }
  }
  ~readiness_reactor() override { close_all(); }

  bool start(operation& operation) noexcept override {
    slot& at = *operation.at;
    if (operation.opcode >= action::ended) [[unlikely]]
      return start_other(at, operation);
    if (operation.opcode == action::write && operation.done != 0) return start_rest(at, operation);
    std::lock_guard lock(at.mutex);
    operation_queue& queue = reads(operation) ? at.readers : at.writers;
    const bool can = reads(operation) ? at.can_read : at.can_write && !at.rest_comes;
    if (queue.empty() && (can || (operation.opcode == action::connect && !operation.begun))) {
      if (attempt(calls, at, operation)) return true;
    }
    if (!at.registered && !tell_of(at, operation)) return true;
    operation.pending = true;
    enter(operation);
    queue.push(operation);
    return false;
  }

  void cancel(operation& operation) noexcept override {
    {
      std::lock_guard lock(operation.at->mutex);
      if (!operation.pending || operation.due || (operation.aside && operation.begun))
        return;  // R2: its turn comes
      queue_of(operation).remove(operation);
      operation.pending = false;
      operation.result = -ECANCELED;
    }
    complete(operation);
  }

  std::int32_t write_at_once(slot& at, std::string_view bytes, bool whole) noexcept override {
    std::lock_guard lock(at.mutex);
    if (!at.can_write || !at.writers.empty() || at.rest_comes) return 0;
    const std::ptrdiff_t sent = send_now(calls, at, bytes);
    at.rest_comes = whole && sent > 0 && static_cast<std::size_t>(sent) < bytes.size();
    return static_cast<std::int32_t>(sent);
  }
  void give_up_rest(slot& at) noexcept override {
    news after;
    {
      std::lock_guard lock(at.mutex);
      at.rest_comes = false;
      go_on(at, at.writers, at.can_write, after);
    }
    tell(after);
  }

  bool carry_out(operation& operation) noexcept override {
    news after;
    {
      slot& at = *operation.at;
      std::lock_guard lock(at.mutex);
      operation.due = false;
      if (operation.pending) {  // false when its stream was closed
        TROUPE_INVARIANT(at.readers.front() == &operation, "R1");
        if (!at.can_read || !try_now(at, operation)) return false;
        at.readers.remove(operation);
        operation.pending = false;
        go_on(at, at.readers, at.can_read, after);
      }
    }
    tell(after);
    leave(operation.weak);
    return true;
  }
  void give_up(operation& operation) noexcept override {
    news after;
    {
      slot& at = *operation.at;
      std::lock_guard lock(at.mutex);
      operation.due = false;
      if (std::exchange(operation.pending, false)) {
        TROUPE_INVARIANT(at.readers.front() == &operation, "R1");
        at.readers.remove(operation);
        operation.result = -ECANCELED;
        go_on(at, at.readers, at.can_read, after);
      }
    }
    tell(after);
    leave(operation.weak);
  }

  bool poll(sched::fetched_events& events, bool busy) noexcept override {
    return fetch_from_any(events, 0, busy ? events_beside_turns : events_max);
  }
  bool wait(sched::fetched_events& events,
            const std::chrono::nanoseconds* limit) noexcept override {
    if (limit == nullptr) return fetch_from_any(events, -1, events_max);
    const auto ms = (limit->count() + 999'999) / 1'000'000;
    return fetch_from_any(events, ms > INT_MAX ? INT_MAX : static_cast<int>(ms), events_max);
  }
  unsigned shards() const noexcept override { return static_cast<unsigned>(shards_.size()); }
  bool look(unsigned number, sched::fetched_events& events, bool busy) noexcept override {
    shard& part = shards_[number];
    if (!part.looked_into.try_enter()) return false;
    const bool came = fetch(part, events, 0, busy ? events_beside_turns : events_max);
    part.looked_into.leave();
    return came;
  }
  void wake() noexcept override { calls.ring(bell_); }
  void retire() noexcept override { calls.end_simulation(); }
  std::optional<std::int64_t> next_ns() override { return calls.next_ns(); }

  void serve(sched::fetched_events& events) noexcept override {
    sched::io_event event;
    while (events.take(event)) apply(*slot_of(event.mark), event);
  }

 protected:
  bool abandon(slot& at, operation_queue& ended) noexcept override {
    // epoll keeps a borrowed descriptor in the set while a duplicate of it is open: it is
    // removed. A descriptor that is closed leaves the set by itself.
    if (at.registered && at.borrowed) calls.remove(set_of(at), at.fd);
    for (operation_queue* queue : {&at.readers, &at.writers, &at.watchers}) {
      while (operation* operation = queue->front()) {
        queue->remove(*operation);
        operation->pending = false;
        operation->result = -ECANCELED;
        if (!operation->due) ended.push(*operation);  // R2
      }
    }
    return true;
  }

 private:
  // Starts an operation of a file, or one that waits for the peer's end.
  bool start_other(slot& at, operation& operation) noexcept {
    if (operation.opcode == action::ended) {
      std::lock_guard lock(at.mutex);
      if (attempt(calls, at, operation) || (!at.registered && !tell_of(at, operation))) return true;
      operation.pending = true;
      enter(operation);
      at.watchers.push(operation);
      return false;
    }
    const bool done = try_file(operation);
    if (!done) start_aside(operation);
    return done;
  }

  // The rest of a write that was begun at once comes before writes that have been queued since.
  // Those follow behind it.
  bool start_rest(slot& at, operation& operation) noexcept {
    news after;
    {
      std::lock_guard lock(at.mutex);
      at.rest_comes = false;
      if (!at.can_write || !attempt(calls, at, operation)) {
        if (at.registered || tell_of(at, operation)) {
          operation.pending = true;
          enter(operation);
          at.writers.push_front(operation);
          return false;
        }
      }
      go_on(at, at.writers, at.can_write, after);
    }
    tell(after);
    return true;
  }

  // One part of the descriptors. The flag and the set's number are read by each look.
  struct alignas(base::line_bytes) shard {
    int set = -1;
    sched::basic_door<> looked_into;
  };

  static constexpr std::uint64_t bell_tag = 0;
  int set_of(const slot& at) const noexcept {
    return shards_[base::part_of(static_cast<std::uint32_t>(at.fd),
                                 static_cast<std::uint32_t>(shards_.size()))]
        .set;
  }

  static int checked(literal call, int result) {
    if (result < 0) throw io_error(call, "", -result);
    return result;
  }

  void close_all() noexcept {
    if (bell_ >= 0) calls.close(bell_);
    for (const shard& part : shards_) {
      if (part.set >= 0) calls.close(part.set);
    }
  }

  // From now on the set reports on this slot, even events that are possible already. Returns false
  // when `operation` is done instead.
  bool tell_of(slot& at, operation& operation) noexcept {
    int result = calls.add(set_of(at), at.fd, interests, tag_of(at));
    // The runtime already waits for this descriptor in another slot: a duplicate of it is added.
    if (result == -EEXIST && at.borrowed && !at.duplicated) {
      result = calls.duplicate(at.fd);
      if (result >= 0) {
        at.fd = result;
        at.duplicated = true;
        result = calls.add(set_of(at), at.fd, interests, tag_of(at));
      }
    }
    if (result >= 0) return at.registered = true;
    // epoll refuses descriptors that never block (a file).
    operation.result = result == -EPERM && (operation.opcode == action::readable ||
                                            operation.opcode == action::writable)
                           ? POLLIN | POLLOUT
                           : result;
    return false;
  }

  // Inside the door. A set remains ready for as long as it has events: those that are left now are
  // found by the next thread. Each look begins with another set, for one that never runs empty
  // would hide the others.
  bool fetch_from_any(sched::fetched_events& events, int timeout_ms, int at_most) noexcept {
    if (shards_.size() == 1) return fetch(shards_.front(), events, timeout_ms, at_most);
    const auto waited = static_cast<unsigned>(waited_for_.size());
    if (calls.wait_for_sets(waited_for_.data(), waited, timeout_ms) <= 0) return false;
    if (waited_for_.back().revents != 0) {
      std::uint64_t rings = 0;
      static_cast<void>(calls.read(bell_, &rings, sizeof rings));
    }
    const std::size_t first = looks_++;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const std::size_t at = (first + i) % shards_.size();
      if (waited_for_[at].revents != 0 && fetch(shards_[at], events, 0, at_most)) return true;
    }
    return false;
  }

  bool fetch(const shard& part, sched::fetched_events& events, int timeout_ms,
             int at_most) noexcept {
    std::array<epoll_event, events_max> reported;
    const int came = calls.wait_events(part.set, reported.data(), at_most, timeout_ms);
    auto& storage = events.storage();
    unsigned fetched = 0;
    for (int i = 0; i < came; ++i) {
      const epoll_event& event = reported[static_cast<std::size_t>(i)];
      // The bell, which only ends a wait, has no slot.
      if (event.data.u64 != bell_tag) storage[fetched++] = {event.data.u64, 0, event.events};
    }
    if (fetched != 0) events.publish(fetched);
    return fetched != 0;
  }

  // Events of one slot may be applied in any order, and by several threads at a time: an event only
  // makes it possible again to try, and the system's answer to a try decides.
  void apply(slot& at, const sched::io_event& event) noexcept {
    news after;
    {
      std::lock_guard lock(at.mutex);
      if (at.generation != generation_of(event.mark) || at.fd < 0) return;
      if ((event.flags & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        at.hung_up = true;
        end_watchers(at, after);
      }
      if ((event.flags & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        at.can_read = true;
        go_on(at, at.readers, at.can_read, after);
      }
      if ((event.flags & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        at.can_write = true;
        if (!at.rest_comes) go_on(at, at.writers, at.can_write, after);
      }
    }
    tell(after);
  }

  // The notices that are sent after the mutex is released.
  struct news {
    operation_queue ended;
    operation* due = nullptr;
  };
  void tell(news& after) noexcept {
    while (operation* operation = after.ended.front()) {
      after.ended.remove(*operation);
      TROUPE_INVARIANT(!operation->due, "R2");
      complete(*operation);
    }
    if (after.due != nullptr) after.due->completed();
  }

  // An operation that waits only for a reset keeps waiting when the peer has ended its half: a
  // reset comes with an edge of its own.
  void end_watchers(slot& at, news& after) noexcept {
    for (operation* watcher = at.watchers.front(); watcher != nullptr;) {
      operation* const next = at.watchers.behind(*watcher);
      if (attempt(calls, at, *watcher)) {
        at.watchers.remove(*watcher);
        watcher->pending = false;
        after.ended.push(*watcher);
      }
      watcher = next;
    }
  }

  TROUPE_INLINE bool try_now(slot& at, operation& operation) noexcept {
    return operation.opcode == action::read && operation.socket && !operation.asks_first
               ? read_socket(calls, at, operation)
               : attempt(calls, at, operation);
  }

  TROUPE_INLINE void go_on(slot& at, operation_queue& queue, const bool& can,
                           news& after) noexcept {
    while (operation* operation = can ? queue.front() : nullptr) {
      // R2 holds even if leases have returned since. Nothing is written here: the turn of the
      // operation may be reading `due`.
      if (operation->due) return;
      // order: relaxed  a test sets it before there is a reactor
      if (operation->in_turn &&
          buffers->nearly_leased() >= leases_ahead.load(std::memory_order_relaxed)) {
        TROUPE_INVARIANT(after.due == nullptr, "R2");
        operation->due = true;
        after.due = operation;
        return;
      }
      TROUPE_INVARIANT(operation->pending, "S1");
      // then the direction is no longer possible, and the loop ends
      if (!try_now(at, *operation)) continue;
      queue.remove(*operation);
      operation->pending = false;
      after.ended.push(*operation);
    }
  }

  const std::unique_ptr<kernel> own_;
  int bell_ = -1;
  std::vector<shard> shards_;       // at least one; a single one also has the bell
  std::vector<pollfd> waited_for_;  // all sets and the bell; used inside the door
  std::size_t looks_ = 0;           // into all shards; inside the door
};

}  // namespace

// order: relaxed  as above
void set_leases_ahead(unsigned most) noexcept {
  leases_ahead.store(most, std::memory_order_relaxed);
}

std::shared_ptr<reactor> make_readiness_reactor(kernel& calls, sched::runtime_host& host,
                                                unsigned shards) {
  return std::make_shared<readiness_reactor>(calls, nullptr, host, shards);
}

std::shared_ptr<reactor> make_readiness_reactor(std::unique_ptr<kernel> calls,
                                                sched::runtime_host& host) {
  kernel& own = *calls;
  return std::make_shared<readiness_reactor>(own, std::move(calls), host, 1);
}

}  // namespace troupe::io
