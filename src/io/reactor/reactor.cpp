#include "io/reactor/reactor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "base/invariant.hpp"
#include "base/thread_name.hpp"
#include "io/kernel/attempt_file.hpp"
#include "io/reactor/make_reactor.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe::io {
namespace {

constexpr std::size_t slots_a_chunk = 64;

}  // namespace

reactor& reactor::of(sched::io_driver_slot& driver) {
  return static_cast<reactor&>(driver.take([&] { return make_reactor(driver); }));
}

reactor* reactor::current() {
  sched::io_driver_slot* driver = tasks::current_io();
  return driver == nullptr ? nullptr : &of(*driver);
}

void reactor::grow() {
  slots_.reserve(slots_.size() + 1);
  slots_.push_back(std::make_unique<slot[]>(slots_a_chunk));
  slot* chunk = slots_.back().get();
  for (std::size_t i = slots_a_chunk; i-- > 0;) {
    chunk[i].owner = this;
    chunk[i].next_free = free_;
    free_ = &chunk[i];
  }
}

slot& reactor::open(int fd, bool borrowed) {
  slot* slot = nullptr;
  {
    std::lock_guard lock(slots_mutex_);
    if (free_ == nullptr) grow();
    slot = free_;
    if (in_use_ == 0) self_ = shared_from_this();
    ++in_use_;
    free_ = slot->next_free;
  }
  std::lock_guard lock(slot->mutex);
  slot->fd = fd;
  slot->borrowed = borrowed;
  slot->registered = slot->duplicated = slot->hung_up = slot->rest_comes = slot->closing = false;
  slot->reads_ahead = false;
  slot->reader_ends = slot->writer_ends = slot->watcher_ends = false;
  slot->can_read = slot->can_write = true;
  return *slot;
}

void reactor::close(slot& at) noexcept {
  operation_queue ended;
  std::unique_lock lock(at.mutex);
  reactor& self = *at.owner;
  const bool at_once = self.abandon(at, ended);
  if (at.fd >= 0 && (!at.borrowed || at.duplicated)) self.calls.close(at.fd);
  at.fd = -1;
  if (const auto kept = std::move(at.kept)) [[unlikely]] {
    for (int fd = kept->take_connection(); fd >= 0; fd = kept->take_connection())
      self.calls.close(fd);
  }
  lock.unlock();
  while (operation* operation = ended.front()) {
    ended.remove(*operation);
    self.complete(*operation);
  }
  if (at_once) self.free_slot(at);
}

void reactor::free_slot(slot& at) noexcept {
  {
    std::lock_guard lock(at.mutex);
    TROUPE_INVARIANT(at.readers.empty() && at.writers.empty() && at.watchers.empty(), "S2");
    ++at.generation;
  }
  std::shared_ptr<reactor> last;  // destroyed after the mutex is released
  std::lock_guard lock(slots_mutex_);
  at.next_free = free_;
  free_ = &at;
  if (--in_use_ == 0) last = std::move(self_);
}

// Not of files: their operations do not wait in the epoll set.
bool reactor::awaits_outside() noexcept {
  const auto waits = [](const operation_queue& all) noexcept {
    const operation* operation = all.front();
    while (operation != nullptr && operation->weak) operation = all.behind(*operation);
    return operation != nullptr;
  };
  const std::lock_guard lock(slots_mutex_);
  for (const auto& chunk : slots_) {
    const bool found =
        std::any_of(chunk.get(), chunk.get() + slots_a_chunk, [&](slot& at) noexcept {
          const std::lock_guard slot_lock(at.mutex);
          return at.fd >= 0 && at.registered && calls.is_outside(at.fd) &&
                 (waits(at.readers) || waits(at.writers) || waits(at.watchers));
        });
    if (found) return true;
  }
  return false;
}

std::size_t reactor::open_slots() const noexcept {
  std::lock_guard lock(slots_mutex_);
  return in_use_;
}

sched::poller::counts reactor::count() const noexcept {
  const std::int64_t in_flight = waiting.count();
  std::uint64_t waits = waiting.begun();
  // order: relaxed  a statistic
  for (const shard& some : shards_) waits += some.waits.load(std::memory_order_relaxed);
  return {waits, static_cast<std::uint64_t>(std::max<std::int64_t>(in_flight, 0)), open_slots()};
}

// The caller makes an operation pending, and counts as outstanding work itself, as a busy worker
// or by a hold. When the first operation comes just as the last one leaves, the order of the two
// calls of the runtime therefore does not matter.
void reactor::enter(const operation& operation) noexcept {
  sched::waiting_operations::share* const own = sched::busy_share::current();
  if (!waiting.has(own)) [[unlikely]]
    return enter_unshared(operation);
  own->count_begun();
  if (!operation.weak) waiting.add_own(*own, 1);
}

TROUPE_NOINLINE void reactor::enter_unshared(const operation& operation) noexcept {
  // order: relaxed  a statistic
  shards_[base::worker_number % shards].waits.fetch_add(1, std::memory_order_relaxed);
  if (!operation.weak) wait_for(1);
}

void reactor::hold_or_release(sched::waiting_operations::next next) noexcept {
  next == sched::waiting_operations::next::hold ? runtime_.hold() : runtime_.release();
}

std::int32_t reactor::write_at_once(slot&, std::string_view, bool) noexcept { return 0; }
void reactor::give_up_rest(slot&) noexcept {}
bool reactor::carry_out(operation&) noexcept { return true; }
void reactor::give_up(operation&) noexcept {}

void reactor::drive() noexcept {
  if (!door.try_enter()) return;
  constexpr std::chrono::nanoseconds round = std::chrono::milliseconds(1);
  sched::unshared_events own;
  const bool came = wait(own.events, &round);
  door.leave();
  if (came) serve(own.events);
}

// How all reactors carry out operations of files that would wait: on a thread of the runtime that
// may block.
//
// Invariant
//   F1  a call that was handed aside finds in its slot an operation that no call has begun, and
//       begins it; or it finds none, because the operation was cancelled. If the slot belongs to
//       another file's operation by then, the call begins that one. That operation's own call then
//       finds it begun, or gone.

// If this object is destroyed without having been called, it ends the operation: with -ECANCELED at
// the end of the runtime, and with -ENOMEM when the list of calls had no space for it.
class reactor::call_aside {
 public:
  call_aside(std::shared_ptr<reactor> by, slot& at) noexcept : by_(std::move(by)), at_(&at) {}
  call_aside(call_aside&& other) noexcept
      : by_(std::move(other.by_)), at_(std::exchange(other.at_, nullptr)) {}
  call_aside& operator=(call_aside&&) = delete;
  ~call_aside() {
    operation* const operation = at_ == nullptr ? nullptr : begin();
    if (operation != nullptr)
      end(*operation, std::uncaught_exceptions() > 0 ? -ENOMEM : -ECANCELED);
  }
  void operator()() noexcept {
    operation* const operation = begin();
    at_ = nullptr;
    if (operation == nullptr) return;
    attempt_file(by_->calls, operation->at->fd, *operation, false);
    end(*operation, operation->result);
  }

 private:
  operation* begin() noexcept {
    std::lock_guard lock(at_->mutex);
    operation* const operation = at_->readers.front();
    if (operation == nullptr || !operation->aside || operation->begun) return nullptr;
    TROUPE_INVARIANT(operation->pending, "F1");
    operation->begun = true;
    return operation;
  }
  void end(operation& operation, int result) noexcept {
    {
      std::lock_guard lock(operation.at->mutex);
      TROUPE_INVARIANT(operation.pending && operation.begun, "F1");
      operation.at->readers.remove(operation);
      operation.pending = false;
      operation.result = result;
    }
    by_->complete(operation);
  }

  std::shared_ptr<reactor> by_;
  slot* at_;
};

bool reactor::try_file(operation& operation) noexcept {
  return attempt_file(calls, operation.at->fd, operation, true);
}

void reactor::start_aside(operation& operation) noexcept {
  slot& at = *operation.at;
  {
    std::lock_guard lock(at.mutex);
    operation.pending = true;
    operation.aside = true;
    enter(operation);
    at.readers.push(operation);
  }
  hand_aside(at);
}

void reactor::hand_aside(slot& at) noexcept {
  try {
    runtime_.run_aside(call_aside(shared_from_this(), at));
  } catch (...) {
    // The call was dropped, and the operation is over.
  }
}

}  // namespace troupe::io
