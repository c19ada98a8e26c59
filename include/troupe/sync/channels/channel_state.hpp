// channel_state: the state that the handles of one channel share: its values, its waiters, its end.
// For the library's own use; users meet channel and select.
// Threads: any. Everything but hints is guarded by the mutex.
// Invariants
//   C1  receivers wait only while there is no value in the ring and no sender waits; senders wait
//       only while the ring is full. Waiters of selects that have been decided do not count, nor do
//       senders that are paused, or whose race another wait has entered: they look again when they
//       resume, or when the race is left.
//   C2  a value is moved once, by the party that has taken the waiter on the other side, or the
//       ring's slot, under the mutex: a wait that ends in another way has moved nothing. A
//       receiver whose call was cancelled meanwhile puts the value back, in front of the others.
//   C3  values leave in the order in which they entered, to the receivers in the order in which
//       these came, but for values that were put back; senders that wait enter in the order in
//       which they came, but for those that were passed over (C1).
//   C4  no party waits once the channel is closed, apart from senders that were passed over (C1).
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/brief_lock.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/sync/channels/ring.hpp"
#include "troupe/sync/channels/waiter.hpp"
#include "troupe/task/groups/race.hpp"

namespace troupe::sync {

// The parts of which channels and selects are made; a model replaces them.
struct channel_parts {
  template <class T>
  using atomic = std::atomic<T>;
  using mutex = base::brief_lock;
  using race = tasks::race;
};

// Which case of a select happens. Decided once, by whoever takes one of its waiters, or by the
// select itself when it gives up (docs/protocols/channels.md).
template <class Parts = channel_parts>
class select_decision : public waiter {
 public:
  enum class answer : std::uint8_t { decided, too_late, later };
  answer decide(std::uint32_t winner) noexcept {
    std::uint32_t seen = open;
    if (change(seen, winner)) return answer::decided;
    return seen == paused ? answer::later : answer::too_late;
  }

 protected:
  static constexpr std::uint32_t open = UINT32_MAX, given_up = UINT32_MAX - 1,
                                 paused = UINT32_MAX - 2;
  bool change(std::uint32_t& seen, std::uint32_t next) noexcept {
    // order: relaxed  decides only; the channels' mutexes publish the cases, and the wake the value
    return winner_.compare_exchange_strong(seen, next, std::memory_order_relaxed,
                                           std::memory_order_relaxed);
  }
  typename Parts::template atomic<std::uint32_t> winner_{open};
};

// A sender or receiver in the list of a channel.
template <class Parts = channel_parts>
struct channel_waiter : waiter {
  channel_waiter() noexcept {}
  // All are set before it enters a list.
  select_decision<Parts>* part_of;  // the select whose case it is; null if it is none
  std::uint32_t index;              // among the cases
  bool paused;                      // no party takes it. For a case the select has this state
  // A sender's: it is taken only by a party that has entered the race. Null: it is in none.
  typename Parts::race* race = nullptr;
};

template <class T, class Parts = channel_parts>
struct receiving_waiter : channel_waiter<Parts> {
  // Not a move of the optional: it would read in one piece two words that were just written, for
  // which the processor has to wait.
  std::optional<T> take() noexcept {
    if (!value) return std::nullopt;
    return std::optional<T>(std::move(*value));
  }
  std::optional<T> value;  // stays empty when the channel is closed
};

enum class send_end : std::uint8_t { sent, closed, no_memory };

template <class T, class Parts = channel_parts>
struct sending_waiter : channel_waiter<Parts> {
  T* value = nullptr;  // untouched until it is sent
  send_end end = send_end::sent;
};

enum class channel_side : std::uint8_t { senders, receivers };

// The part that does not depend on the type of the values.
template <class Parts = channel_parts>
class channel_base {
 public:
  using side = channel_side;
  using one_waiter = channel_waiter<Parts>;
  static constexpr std::size_t unbounded = SIZE_MAX;

  channel_base(const channel_base&) = delete;
  channel_base& operator=(const channel_base&) = delete;

  std::size_t capacity() const noexcept { return capacity_; }
  // These four are hints: they were true a moment ago.
  // order: relaxed  hints
  std::size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
  // How many values have been received.
  std::uint64_t passed() const noexcept { return passed_.load(std::memory_order_relaxed); }
  // Whether a receive, or a send, might be done at once.
  bool may_be_ready(side party) const noexcept {
    if (capacity_ == 0 || is_closed()) return true;
    return party == side::receivers ? size() != 0 : size() < capacity_;
  }

  // Thread: any. Wakes all that wait.
  void close() noexcept {
    woken_waiters ready;
    {
      std::lock_guard guard(mutex_);
      // order: relaxed  written under the mutex; elsewhere a hint
      closed_.store(true, std::memory_order_relaxed);
      while (one_waiter* const woken = take_oldest(receivers_)) ready.push(*woken);
      while (one_waiter* const woken = take_oldest(senders_)) {
        refuse(*woken);
        ready.push(*woken);
      }
    }
    ready.wake();
  }

  // Handles of one side only (channel::sender and channel::receiver) are counted; the channel is
  // closed when all handles of a side are destroyed.
  void add_half(side half) noexcept {
    // order: relaxed  the caller has a handle already
    halves_[static_cast<int>(half)].fetch_add(1, std::memory_order_relaxed);
  }
  void drop_half(side half) noexcept {
    // order: acq_rel  the last one closes after all that the others did
    if (halves_[static_cast<int>(half)].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    close();
    if (half == side::receivers) drop_values();
  }

  // For waiters, and for select, which holds the mutexes of all its channels in the order of their
  // addresses.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  waiter_list& list(side half) noexcept { return half == side::senders ? senders_ : receivers_; }
  // Takes the waiter out of its list. False: its wait is decided already.
  bool withdraw(side half, one_waiter& party) noexcept {
    std::lock_guard guard(mutex_);
    return list(half).withdraw(party);
  }
  // Keeps the waiter where it is; no party takes it. False: its wait is decided already.
  bool pause(one_waiter& party) noexcept {
    std::lock_guard guard(mutex_);
    if (!party.listed()) return false;
    party.paused = true;
    return true;
  }

 protected:
  explicit channel_base(std::size_t capacity) noexcept : capacity_(capacity) {}
  ~channel_base() = default;

  // Under the mutex: takes the oldest waiter whose wait is neither decided yet nor paused, nor in a
  // race that another wait has entered.
  static one_waiter* take_oldest(waiter_list& from) noexcept {
    using answer = typename select_decision<Parts>::answer;
    for (waiter* at = from.first(); at != nullptr;) {
      auto* const party = static_cast<one_waiter*>(at);
      at = waiter_list::next(*party);
      if (party->paused) [[unlikely]]
        continue;
      if (party->race != nullptr && !party->race->enter()) [[unlikely]]
        continue;
      const answer got =
          party->part_of == nullptr ? answer::decided : party->part_of->decide(party->index);
      // The select has been decided or paused: when it continues it checks again.
      if (got != answer::decided && party->race != nullptr) party->race->leave();
      if (got == answer::later) continue;
      from.remove(*party);
      if (got == answer::decided) return party;
    }
    return nullptr;
  }
  static void wake(one_waiter* party) noexcept {
    if (party != nullptr) party->wake(*party);
  }
  // order: relaxed  hints; written under the mutex
  void publish(std::size_t count) noexcept { count_.store(count, std::memory_order_relaxed); }
  void count_passed() noexcept {
    passed_.store(passed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // No receiver is left: destroys the values that it would have received.
  virtual void drop_values() noexcept = 0;
  // Under the mutex, for close().
  virtual void refuse(one_waiter& sender) noexcept = 0;

  typename Parts::mutex mutex_;
  typename Parts::template atomic<bool> closed_{false};
  const std::size_t capacity_;
  typename Parts::template atomic<std::size_t> count_{0};
  typename Parts::template atomic<std::uint64_t> passed_{0};
  waiter_list senders_, receivers_;
  typename Parts::template atomic<std::uint32_t> halves_[2]{};
};

template <class T, class Parts = channel_parts>
class channel_state final : public channel_base<Parts> {
  using base = channel_base<Parts>;
  using base::capacity_, base::closed_, base::mutex_, base::receivers_, base::senders_;
  using typename base::one_waiter;

 public:
  using sending = sending_waiter<T, Parts>;
  using receiving = receiving_waiter<T, Parts>;

  explicit channel_state(std::size_t capacity)
      : base(capacity), values_(capacity == base::unbounded ? 0 : capacity) {}

  // Returns true if the waiter is in the list now; calls prepare() before.
  template <class Prepare>
  TROUPE_INLINE bool send_or_wait(sending& sender, const Prepare& prepare) noexcept {
    one_waiter* served = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (!send_inside(sender, served)) {
        prepare();
        sender.part_of = nullptr;
        sender.paused = false;
        senders_.push(sender);
        return true;
      }
    }
    base::wake(served);
    return false;
  }
  template <class Prepare>
  TROUPE_INLINE bool receive_or_wait(receiving& receiver, const Prepare& prepare) noexcept {
    one_waiter* served = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (!receive_inside(receiver, served)) {
        prepare();
        receiver.part_of = nullptr;
        receiver.paused = false;
        receivers_.push(receiver);
        return true;
      }
    }
    base::wake(served);
    return false;
  }
  // Return whether it was done.
  bool try_send(sending& sender) noexcept {
    one_waiter* served = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (!send_inside(sender, served)) return false;
    }
    base::wake(served);
    return true;
  }
  bool try_receive(receiving& receiver) noexcept {
    one_waiter* served = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (!receive_inside(receiver, served)) return false;
    }
    base::wake(served);
    return true;
  }

  // After pause(): sends now if that can be done, and otherwise waits on, at its old place.
  void resume(sending& sender) noexcept {
    one_waiter* served = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (!sender.listed()) return;  // the wait has ended by its limit
      sender.paused = false;
      if (sender.race != nullptr && !sender.race->enter()) return;
      if (!send_inside(sender, served)) {
        if (sender.race != nullptr) sender.race->leave();
        return;
      }
      senders_.remove(sender);
    }
    base::wake(served);
    base::wake(&sender);
  }

  // For a receiver that was given a value and may not take it: the value goes to the receiver that
  // waits longest, or becomes the first one of the ring again, which then may hold more than the
  // capacity. False without memory; then the receiver keeps the value.
  bool put_back(receiving& receiver) noexcept {
    if (!receiver.value) return true;  // the channel is closed
    one_waiter* served = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (!receivers_.empty()) served = base::take_oldest(receivers_);
      if (served != nullptr) {
        static_cast<receiving&>(*served).value.emplace(std::move(*receiver.value));
      } else {
        if (values_.full() && !grow()) return false;
        values_.push_front(std::move(*receiver.value));
        base::publish(values_.size());
      }
    }
    receiver.value.reset();
    base::wake(served);
    return true;
  }

  // Under the mutex: does it at once, or returns false. The caller then wakes `served`, without the
  // mutex.
  bool send_inside(sending& sender, one_waiter*& served) noexcept {
    // order: relaxed  written under the mutex
    if (closed_.load(std::memory_order_relaxed)) [[unlikely]] {
      sender.end = send_end::closed;
      return true;
    }
    if (!receivers_.empty()) {
      served = base::take_oldest(receivers_);
      if (served != nullptr) {
        static_cast<receiving&>(*served).value.emplace(std::move(*sender.value));
        base::count_passed();
        return true;
      }
    }
    if (values_.size() >= capacity_) return false;
    if (values_.full() && !grow()) [[unlikely]] {
      sender.end = send_end::no_memory;
      return true;
    }
    push(*sender.value);
    return true;
  }
  bool receive_inside(receiving& receiver, one_waiter*& served) noexcept {
    if (!values_.empty()) {
      receiver.value.emplace(std::move(values_.front()));
      values_.drop();
      base::count_passed();
      if (!senders_.empty() && values_.size() < capacity_) served = base::take_oldest(senders_);
      if (served != nullptr) {
        push(*static_cast<sending&>(*served).value);
      } else {
        values_.shrink(capacity_ == base::unbounded ? slots_kept : SIZE_MAX);
        base::publish(values_.size());
      }
      return true;
    }
    if (!senders_.empty()) served = base::take_oldest(senders_);
    if (served != nullptr) {
      receiver.value.emplace(std::move(*static_cast<sending&>(*served).value));
      base::count_passed();
      return true;
    }
    return closed_.load(std::memory_order_relaxed);  // order: relaxed  as above
  }

 private:
  // An unbounded channel that is empty keeps so many slots.
  static constexpr std::size_t slots_kept = 1024;

  void push(T& value) noexcept {
    values_.push(std::move(value));
    base::publish(values_.size());
  }
  bool grow() noexcept try {
    values_.grow();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void drop_values() noexcept override {
    std::optional<ring<T>> dropped;  // destroyed without the mutex
    std::lock_guard guard(mutex_);
    dropped.emplace(std::move(values_));
    base::publish(0);
  }
  void refuse(one_waiter& sender) noexcept override {
    static_cast<sending&>(sender).end = send_end::closed;
  }

  ring<T> values_;
};

}  // namespace troupe::sync
