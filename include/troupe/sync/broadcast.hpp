// broadcast: every receiver gets every value, unless it is so slow that it misses some.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
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

// The values lie in a ring; each receiver has its own position in their sequence. A receiver that
// waits is at the end of it.
template <class T>
class broadcast_state final : public source_base {
 public:
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
      ++sent_;
      ready.push_all(waiting_);
    }
    ready.wake();
  }

  // Where a receiver begins.
  std::uint64_t end() noexcept {
    std::lock_guard guard(mutex_);
    return sent_;
  }

  // Takes the next value, if there is one or the source is closed. Otherwise returns false, and the
  // waiter, if there is one, is in the list now.
  bool take(std::uint64_t& position, std::optional<broadcast_value<T>>& into, waiter* one) {
    std::lock_guard guard(mutex_);
    if (position == sent_) {
      if (one != nullptr && !is_closed()) waiting_.push(*one);
      return is_closed();
    }
    const std::uint64_t oldest = sent_ - values_.size();
    const std::uint64_t next = std::max(position, oldest);
    into.emplace(values_[next - oldest], next - position);
    position = next + 1;
    return true;
  }
  // How many a receiver has not taken yet, those included that it has missed.
  std::uint64_t behind(std::uint64_t position) noexcept {
    std::lock_guard guard(mutex_);
    return sent_ - position;
  }

 private:
  ring<T> values_;
  std::uint64_t sent_ = 0;
};

template <class T>
struct broadcast_receiving : waiter {
  static constexpr const char* name = "a value of a broadcast";

  broadcast_receiving(broadcast_state<T>& of, std::uint64_t& at) noexcept
      : from(&of), position(&at) {}
  broadcast_receiving(broadcast_receiving&& other) noexcept
      : from(other.from), position(other.position) {}

  bool start() noexcept try {
    taken = from->take(*position, value, this);
    return !taken;
  } catch (...) {
    error = std::current_exception();  // of a copy; the value stays
    return false;
  }
  bool withdraw() noexcept { return from->withdraw(*this); }
  std::optional<broadcast_value<T>> finish() {
    if (error != nullptr) [[unlikely]]
      std::rethrow_exception(std::move(error));
    if (!taken) static_cast<void>(from->take(*position, value, nullptr));
    return std::move(value);
  }

  broadcast_state<T>* from;
  std::uint64_t* position;
  std::optional<broadcast_value<T>> value;
  std::exception_ptr error;
  bool taken = false;
};

}  // namespace sync

// A sequence of values for any number of receivers, each of which gets a copy of every value that
// is sent after it has subscribed. A sender never waits: the last `capacity` values are kept, and a
// receiver that is slower than that is told how many it has missed.
//
// Copies of a broadcast refer to the same one; when the last of them goes, or at close(), it is
// closed, and its receivers get what is left for them and then nothing. Thread: any. Cost: about 20
// ns for a send, and for each receiver that gets it. Values are copied under a lock: let large ones
// be std::shared_ptr<const T>. Errors: usage_error for a capacity of 0; channel_closed at a send.
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
    // left. Else it has the members `value` and `missed`. A wait that ends early, or throws what a
    // copy has thrown, has taken nothing.
    sync::awaiting<sync::broadcast_receiving<T>> receive() {
      return sync::awaiting<sync::broadcast_receiving<T>>(std::in_place, *state_, position_);
    }
    // Does not wait: empty if there is no value now.
    std::optional<received> try_receive() {
      std::optional<received> got;
      static_cast<void>(state_->take(position_, got, nullptr));
      return got;
    }
    // How many values it has not received yet, those that it will miss included.
    std::uint64_t behind() const noexcept { return state_->behind(position_); }
    bool is_closed() const noexcept { return state_->is_closed(); }

   private:
    friend broadcast;
    explicit receiver(std::shared_ptr<state> of) noexcept
        : state_(std::move(of)), position_(state_->end()) {}
    std::shared_ptr<state> state_;
    std::uint64_t position_;
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
