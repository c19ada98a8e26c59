// channel: a queue of values between any number of senders and receivers, which wait for each
// other.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/sync/channels/channel_state.hpp"
// Wherever there are channels, when_any of sends and receives is a select().
#include "troupe/sync/select.hpp"  // IWYU pragma: export
#include "troupe/sync/waiting.hpp"

namespace troupe {

namespace sync {

[[noreturn]] void throw_not_sent(send_end why);

// Sends from an object of the caller's, or from a copy of its own.
template <class T, class Held>
struct sending : sending_waiter<T> {
  using state = channel_state<T>;
  static constexpr const char* name = "room in a channel";
  static constexpr channel_side side = channel_side::senders;

  template <class Given>
  sending(state& to, Given&& given) noexcept(std::is_nothrow_constructible_v<Held, Given>)
      : into(&to), held(std::forward<Given>(given)) {}
  sending(sending&& other) noexcept : into(other.into), held(std::move(other.held)) {}

  template <class Prepare>
  bool start(const Prepare& prepared) noexcept {
    prepare();
    return into->send_or_wait(*this, prepared);
  }
  bool withdraw() noexcept { return into->withdraw(side, *this); }
  // A receiver may have the value already.
  bool put_back() const noexcept { return this->end != send_end::sent; }
  bool pause() noexcept { return into->pause(*this); }
  void resume() noexcept { into->resume(*this); }
  void join_race(tasks::race* joined) noexcept { this->race = joined; }
  tasks::race* joined_race() const noexcept { return this->race; }
  bool has_entered_race() const noexcept { return true; }
  void finish() const {
    if (this->end != send_end::sent) [[unlikely]]
      throw_not_sent(this->end);
  }

  // For select.
  void prepare() noexcept {
    if constexpr (std::is_pointer_v<Held> && !std::is_same_v<T, Held>) {
      this->value = held;
    } else {
      this->value = &held;
    }
  }
  static bool do_inside(channel_waiter<>& self, channel_waiter<>*& served) noexcept {
    auto& waiting = static_cast<sending&>(self);
    return waiting.into->send_inside(waiting, served);
  }
  channel_base<>& on() const noexcept { return *into; }

  state* into;
  Held held;
};

template <class T>
struct receiving : receiving_waiter<T> {
  using state = channel_state<T>;
  static constexpr const char* name = "a value from a channel";
  static constexpr channel_side side = channel_side::receivers;

  explicit receiving(state& channel) noexcept : from(&channel) {}
  receiving(receiving&& other) noexcept : from(other.from) {}

  template <class Prepare>
  bool start(const Prepare& prepared) noexcept {
    return from->receive_or_wait(*this, prepared);
  }
  bool withdraw() noexcept { return from->withdraw(side, *this); }
  bool put_back() noexcept { return from->put_back(*this); }
  std::optional<T> finish() noexcept { return this->take(); }

  // For select.
  void prepare() noexcept {}
  static bool do_inside(channel_waiter<>& self, channel_waiter<>*& served) noexcept {
    auto& waiting = static_cast<receiving&>(self);
    return waiting.from->receive_inside(waiting, served);
  }
  channel_base<>& on() const noexcept { return *from; }

  state* from;
};

// One side of a channel, with a count of its handles.
template <class T, channel_side Side>
class channel_half {
 public:
  explicit channel_half(std::shared_ptr<channel_state<T>> channel) noexcept
      : state_(std::move(channel)) {
    state_->add_half(Side);
  }
  channel_half(const channel_half& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) state_->add_half(Side);
  }
  channel_half(channel_half&& other) noexcept = default;
  channel_half& operator=(channel_half other) noexcept {
    state_.swap(other.state_);
    return *this;
  }
  ~channel_half() {
    if (state_ != nullptr) state_->drop_half(Side);
  }

 protected:
  std::shared_ptr<channel_state<T>> state_;
};

}  // namespace sync

// A queue between senders and receivers, any number of each: coroutines in tasks and handlers, and
// plain threads. Copies share one channel. A value goes to one receiver.
//
// Three kinds: bounded(n) holds up to n values, and a sender waits while it is full; rendezvous()
// holds none, so that a sender waits until a receiver takes its value; unbounded() holds as many as
// there is memory for, and its senders never wait.
//
// Thread: any. Order: first in, first out; parties that wait are served in the order in which they
// came. Cost: about 12 ns for a value, sent and received; bounded(n) allocates its n places at
// once. Errors: channel_closed at a send to a closed channel; timed_out and cancelled;
// std::bad_alloc at a send to an unbounded channel. In each of these cases nothing was sent, and
// the caller still has the value that was to be moved; a receive has taken nothing. Lifetime: a
// handle must outlive the waits that it began; the values of a channel without handles are
// destroyed. T's move must not throw: put a type whose move may throw into a std::unique_ptr.
//
// Example:
//     troupe::task<> produce(troupe::channel<int> numbers) {
//       for (int i = 0; i < 10; ++i) co_await numbers.send(i);
//       numbers.close();
//     }
//     troupe::task<> consume(troupe::channel<int> numbers) {
//       int sum = 0;
//       while (const auto number = co_await numbers.receive()) sum += *number;
//       std::cout << sum << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       const auto numbers = troupe::channel<int>::bounded(4);
//       rt.spawn(produce(numbers));
//       rt.spawn(consume(numbers));
//       rt.run();
//     }
template <class T>
class channel {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>,
                "troupe: channel: the type of its values must be a plain type");
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "troupe: channel: a move of its values must not throw; use a std::unique_ptr of "
                "them");
  // A small plain value is copied when send() is called: send(1) may be kept for later.
  static constexpr bool held_by_value =
      std::is_trivially_copyable_v<T> && sizeof(T) <= 2 * sizeof(void*);
  using state = sync::channel_state<T>;

 public:
  using value_type = T;
  class sender;
  class receiver;

  // Throws usage_error for a capacity of 0.
  static channel bounded(std::size_t capacity) {
    if (capacity == 0 || capacity == state::unbounded)
      throw usage_error(
          "troupe: channel::bounded: the capacity must be at least 1; without places it is "
          "channel::rendezvous()");
    return channel(capacity);
  }
  static channel rendezvous() { return channel(0); }
  static channel unbounded() { return channel(state::unbounded); }

  using sending_small = sync::awaiting<sync::sending<T, T>>;
  using sending_moved = sync::awaiting<sync::sending<T, T*>>;
  using receiving = sync::awaiting<sync::receiving<T>>;

  // Waits for room, or for a receiver. The value must live until then: it is moved when it is sent,
  // and not if the send fails. co_await it, optionally with timeout() or stop(), or block in get()
  // on a plain thread.
  sending_moved send(T&& value) const requires(!held_by_value) {
    return sending_moved(std::in_place, *state_, &value);
  }
  // The same with a copy.
  sending_small send(const T& value) const
      requires(!held_by_value && std::is_copy_constructible_v<T>) {
    return sending_small(std::in_place, *state_, value);
  }
  sending_small send(T value) const requires held_by_value {
    return sending_small(std::in_place, *state_, value);
  }
  // Waits for a value. The result is empty once the channel is closed and nothing is left in it.
  receiving receive() const { return receiving(std::in_place, *state_); }

  // Does not wait. Returns false if it would have to wait; then the value is not moved. Throws
  // channel_closed.
  bool try_send(T&& value) const {
    sync::sending_waiter<T> waiting;
    waiting.value = &value;
    if (!state_->try_send(waiting)) return false;
    if (waiting.end != sync::send_end::sent) sync::throw_not_sent(waiting.end);
    return true;
  }
  bool try_send(const T& value) const requires std::is_copy_constructible_v<T> {
    T copy(value);
    return try_send(std::move(copy));
  }
  // Does not wait. Empty if there is no value now, or the channel is closed.
  std::optional<T> try_receive() const {
    sync::receiving_waiter<T> waiting;
    static_cast<void>(state_->try_receive(waiting));
    return waiting.take();
  }

  // Senders get channel_closed from now on, waiting senders as well; receivers get the remaining
  // values, and then nothing. A second call does nothing.
  void close() const noexcept { state_->close(); }
  bool is_closed() const noexcept { return state_->is_closed(); }
  // The number of values that it holds, now or a moment ago; and the maximum, SIZE_MAX if it is
  // unbounded.
  std::size_t size() const noexcept { return state_->size(); }
  std::size_t capacity() const noexcept { return state_->capacity(); }

  // Two handles, one to send and one to receive. Copies count: when the last sender is destroyed,
  // the channel is closed; when the last receiver is destroyed, it is closed and its remaining
  // values are destroyed.
  std::pair<sender, receiver> split() const { return {sender(state_), receiver(state_)}; }

  friend bool operator==(const channel&, const channel&) = default;

 private:
  explicit channel(std::size_t capacity) : state_(std::make_shared<state>(capacity)) {}
  explicit channel(std::shared_ptr<state> shared) noexcept : state_(std::move(shared)) {}
  std::shared_ptr<state> state_;
};

// A handle that can only send.
template <class T>
class channel<T>::sender : sync::channel_half<T, sync::channel_side::senders> {
 public:
  template <class Value>
  auto send(Value&& value) const requires requires(channel<T> target, Value&& given) {
    target.send(std::forward<Value>(given));
  }
  { return whole().send(std::forward<Value>(value)); }
  template <class Value>
  bool try_send(Value&& value) const requires requires(channel<T> target, Value&& given) {
    target.try_send(std::forward<Value>(given));
  }
  { return whole().try_send(std::forward<Value>(value)); }
  void close() const noexcept { this->state_->close(); }
  bool is_closed() const noexcept { return this->state_->is_closed(); }
  std::size_t size() const noexcept { return this->state_->size(); }
  std::size_t capacity() const noexcept { return this->state_->capacity(); }

 private:
  friend channel;
  using sync::channel_half<T, sync::channel_side::senders>::channel_half;
  channel whole() const noexcept { return channel(this->state_); }
};

// A handle that can only receive.
template <class T>
class channel<T>::receiver : sync::channel_half<T, sync::channel_side::receivers> {
 public:
  receiving receive() const { return receiving(std::in_place, *this->state_); }
  std::optional<T> try_receive() const { return channel(this->state_).try_receive(); }
  void close() const noexcept { this->state_->close(); }
  bool is_closed() const noexcept { return this->state_->is_closed(); }
  std::size_t size() const noexcept { return this->state_->size(); }
  std::size_t capacity() const noexcept { return this->state_->capacity(); }

 private:
  friend channel;
  using sync::channel_half<T, sync::channel_side::receivers>::channel_half;
};

}  // namespace troupe
