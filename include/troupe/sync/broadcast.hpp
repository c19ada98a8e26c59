// broadcast: every receiver gets every value, except for the values that a slow receiver misses.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/sync/channels/ring.hpp"
#include "troupe/sync/channels/source_base.hpp"
#include "troupe/sync/waiting.hpp"

namespace troupe {
namespace sync {

// A value, and how many the receiver has missed just before it.
template <class T>
struct broadcast_value {
  broadcast_value(const T& given, std::uint64_t before) : value(given), missed(before) {}
  T value;
  std::uint64_t missed;
};

// The position of a receiver in the sequence, and copies of the next few values. Small plain values
// are copied several at a time, since to take the lock costs more than they do.
template <class T>
struct broadcast_position {
  static constexpr bool reads_ahead =
      std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && sizeof(T) <= 16;
  static constexpr std::uint32_t ahead_max = 8;
  struct nothing {};
  using copies = std::conditional_t<reads_ahead, std::array<T, ahead_max>, nothing>;

  std::uint64_t next = 0;
  std::uint32_t ahead = 0;  // how many copies there are, from `first` on
  std::uint32_t first = 0;
  [[no_unique_address]] copies values;
};

// The values lie in a ring; each receiver has its own position in their sequence. A receiver that
// waits is at the end of it.
template <class T>
class broadcast_state final : public source_base {
 public:
  using position = broadcast_position<T>;
  using received = std::optional<broadcast_value<T>>;

  explicit broadcast_state(std::size_t capacity) : values_(capacity) {}

  std::size_t capacity() const noexcept { return values_.slots(); }

  void send(T&& value) {
    std::optional<T> oldest;  // destroyed without the mutex
    woken_waiters ready;
    {
      std::lock_guard guard(mutex_);
      if (is_closed()) throw channel_closed("troupe: broadcast: it is closed; nothing was sent");
      if (values_.full()) {
        oldest.emplace(std::move(values_.front()));
        values_.drop();
      }
      values_.push(std::move(value));
      // order: relaxed  written under the mutex; elsewhere a hint
      sent_.store(sent() + 1, std::memory_order_relaxed);
      ready.push_all(waiting_);
    }
    ready.wake();
  }

  // How many have been sent: at least so many, to a thread without the mutex.
  // order: relaxed  as above
  std::uint64_t sent() const noexcept { return sent_.load(std::memory_order_relaxed); }

  // Where a receiver begins.
  std::uint64_t end() noexcept {
    std::lock_guard guard(mutex_);
    return sent();
  }

  // Puts the waiter into the list, after prepare(). Returns false if there is a value, or if none
  // will come any more.
  template <class Prepare>
  bool wait(const position& at, waiter& party, const Prepare& prepare) noexcept {
    if (at.next != sent()) return false;
    std::lock_guard guard(mutex_);
    if (at.next != sent() || is_closed()) return false;
    prepare();
    waiting_.push(party);
    return true;
  }
  // Takes the next value, if any.
  received take(position& at) {
    if constexpr (position::reads_ahead) {
      // A copy is valid as long as the ring would still hold its value.
      if (at.ahead != 0 && sent() - at.next <= capacity()) {
        --at.ahead;
        ++at.next;
        return received(std::in_place, at.values[at.first++], 0);
      }
    }
    return take_from_ring(at);
  }
  // The number of values that a receiver has not taken yet, including the values that it has
  // missed.
  std::uint64_t behind(const position& at) noexcept {
    std::lock_guard guard(mutex_);
    return sent() - at.next;
  }

 private:
  TROUPE_NOINLINE received take_from_ring(position& at) {
    received got;
    std::lock_guard guard(mutex_);
    if (at.next == sent()) return got;
    const std::uint64_t oldest = sent() - values_.size();
    const std::uint64_t next = std::max(at.next, oldest);
    got.emplace(values_[next - oldest], next - at.next);
    at.next = next + 1;
    if constexpr (position::reads_ahead) {
      at.first = 0;
      at.ahead = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(sent() - at.next, position::ahead_max));
      for (std::uint32_t i = 0; i < at.ahead; ++i) at.values[i] = values_[at.next + i - oldest];
    }
    return got;
  }

  ring<T> values_;
  std::atomic<std::uint64_t> sent_{0};
};

template <class T>
struct broadcast_receiving : waiter {
  static constexpr const char* name = "a value of a broadcast";

  broadcast_receiving(broadcast_state<T>& broadcast, broadcast_position<T>& position) noexcept
      : source(&broadcast), at(&position) {}
  broadcast_receiving(broadcast_receiving&& other) noexcept : source(other.source), at(other.at) {}

  template <class Prepare>
  bool start(const Prepare& prepare) noexcept {
    return source->wait(*at, *this, prepare);
  }
  bool withdraw() noexcept { return source->withdraw(*this); }
  bool put_back() const noexcept { return true; }  // finish() takes
  std::optional<broadcast_value<T>> finish() { return source->take(*at); }

  broadcast_state<T>* source;
  broadcast_position<T>* at;
};

}  // namespace sync

// A sequence of values for any number of receivers, each of which gets a copy of every value that
// is sent after it has subscribed. A sender never waits: the last `capacity` values are kept, and a
// slower receiver gets the number of values that it has missed.
//
// Copies share one broadcast; when the last of them is destroyed, or at close(),
// it is closed, and its receivers get the remaining values and then nothing. Thread: any. Cost:
// about 20 ns for a send, and for each receiver that gets it. Values are copied under a lock: let
// large ones be std::shared_ptr<const T>. Errors: usage_error for a capacity of 0; channel_closed
// at a send.
//
// Example:
//     troupe::task<> listen(troupe::broadcast<std::string>::receiver news) {
//       while (const auto got = co_await news.receive()) {
//         if (got->missed != 0) std::cout << got->missed << " missed\n";
//         std::cout << got->value << '\n';
//       }
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::broadcast<std::string> news(16);
//       for (int i = 0; i < 3; ++i) rt.spawn(listen(news.subscribe()));
//       news.send("it rains");
//       news.close();
//       rt.run();
//     }
template <class T>
class broadcast : sync::writer_handle<std::shared_ptr<sync::broadcast_state<T>>> {
  static_assert(std::is_copy_constructible_v<T> && std::is_nothrow_move_constructible_v<T>,
                "troupe: broadcast: its values are copied for each receiver, and a move of them "
                "must not throw; use a std::shared_ptr of them");
  using state = sync::broadcast_state<T>;
  using handle = sync::writer_handle<std::shared_ptr<state>>;

 public:
  using value_type = T;
  using received = sync::broadcast_value<T>;

  explicit broadcast(std::size_t capacity) : handle(std::make_shared<state>(checked(capacity))) {}

  void send(T value) const { this->state_->send(std::move(value)); }
  void close() const noexcept { this->state_->close(); }
  bool is_closed() const noexcept { return this->state_->is_closed(); }
  std::size_t capacity() const noexcept { return this->state_->capacity(); }

  // One receiver with its position in the sequence. Thread: any, one at a time. It must not move
  // while its receive() waits.
  class receiver {
   public:
    receiver(receiver&&) noexcept = default;
    receiver& operator=(receiver&&) noexcept = default;

    // Waits for the next value. The result is empty once the broadcast is closed and nothing is
    // left. Else it has the members `value` and `missed`. A wait that ends early, or throws an
    // exception from a copy, has taken nothing.
    sync::awaiting<sync::broadcast_receiving<T>> receive() {
      return sync::awaiting<sync::broadcast_receiving<T>>(std::in_place, *state_, position_);
    }
    // Does not wait: empty if there is no value now.
    std::optional<received> try_receive() { return state_->take(position_); }
    // The number of values that it has not received yet, including the values that it will miss.
    std::uint64_t behind() const noexcept { return state_->behind(position_); }
    bool is_closed() const noexcept { return state_->is_closed(); }

   private:
    friend broadcast;
    explicit receiver(std::shared_ptr<state> broadcast) noexcept
        : state_(std::move(broadcast)), position_{.next = state_->end(), .values = {}} {}
    std::shared_ptr<state> state_;
    sync::broadcast_position<T> position_;
  };
  receiver subscribe() const { return receiver(this->state_); }

 private:
  static std::size_t checked(std::size_t capacity) {
    if (capacity == 0)
      throw usage_error(
          "troupe: broadcast: the capacity must be at least 1: how many values a "
          "receiver may be behind");
    return capacity;
  }
};

}  // namespace troupe
