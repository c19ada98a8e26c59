// watch: a value of which readers see the newest, and wait for the next.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/sync/channels/source_base.hpp"
#include "troupe/sync/waiting.hpp"

namespace troupe {
namespace sync {

template <class T>
class watch_state final : public source_base {
 public:
  explicit watch_state(T&& first) : value_(std::move(first)) {}

  // `change` gets the value, under the mutex.
  template <class Change>
  void update(Change&& change) {
    woken_waiters ready;
    {
      std::lock_guard guard(mutex_);
      if (is_closed()) throw channel_closed("troupe: watch: it is closed; nothing was changed");
      std::invoke(std::forward<Change>(change), value_);
      ++version_;
      ready.push_all(waiting_);
    }
    ready.wake();
  }
  template <class Look>
  decltype(auto) look(Look&& at) const {
    std::lock_guard guard(mutex_);
    return std::invoke(std::forward<Look>(at), value_);
  }
  std::uint64_t version() const noexcept {
    std::lock_guard guard(mutex_);
    return version_;
  }

  // Returns false if there is something new, or never will be.
  bool wait_for_other(std::uint64_t version, waiter& party) noexcept {
    std::lock_guard guard(mutex_);
    if (version != version_ || is_closed()) return false;
    waiting_.push(party);
    return true;
  }
  // The newest value, if it is newer than `version`, which is then set to its version.
  std::optional<T> take_newer(std::uint64_t& version) const {
    std::optional<T> newest;
    std::lock_guard guard(mutex_);
    if (version == version_) return newest;
    newest.emplace(value_);
    version = version_;
    return newest;
  }

 private:
  T value_;
  std::uint64_t version_ = 1;
};

template <class T>
struct watch_waiting : waiter {
  static constexpr const char* name = "a change of a watch";

  watch_waiting(watch_state<T>& at, std::uint64_t& version) noexcept
      : source(&at), seen(&version) {}
  watch_waiting(watch_waiting&& other) noexcept : source(other.source), seen(other.seen) {}

  bool start() noexcept { return source->wait_for_other(*seen, *this); }
  bool withdraw() noexcept { return source->withdraw(*this); }
  bool put_back() const noexcept { return true; }  // finish() takes
  std::optional<T> finish() { return source->take_newer(*seen); }

  watch_state<T>* source;
  std::uint64_t* seen;
};

}  // namespace sync

// A value that is set again and again, such as a configuration or a state, and its readers. A
// reader gets the newest value; it does not see the values set in between.
//
// Copies share one watch; when the last of them is destroyed, or at close(), it is closed,
// and each reader gets a value that it has not seen yet and then nothing. Thread: any. Cost: about
// 20 ns. Values are copied under a lock: let large ones be std::shared_ptr<const T>. Errors:
// channel_closed at a change.
//
// Example:
//     troupe::task<> follow(troupe::watch<int>::reader level) {
//       while (const auto now = co_await level.changed()) std::cout << *now << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::watch<int> level(0);
//       rt.spawn(follow(level.subscribe()));
//       level.set(1);
//       level.set(2);
//       level.close();
//       rt.run();
//     }
template <class T>
class watch : sync::writer_handle<std::shared_ptr<sync::watch_state<T>>> {
  static_assert(std::is_copy_constructible_v<T>,
                "troupe: watch: its value is copied for each reader; use a std::shared_ptr of it");
  using state = sync::watch_state<T>;
  using handle = sync::writer_handle<std::shared_ptr<state>>;

 public:
  using value_type = T;

  explicit watch(T first) : handle(std::make_shared<state>(std::move(first))) {}

  // Readers that wait continue.
  void set(T value) const {
    this->state_->update([&](T& now) {
      using std::swap;
      swap(now, value);  // the old value is destroyed without the lock
    });
  }
  // Changes the value in place: `change` gets a T&, under a lock, and must not use this watch. If
  // it throws, no reader is notified.
  template <std::invocable<T&> Change>
  void update(Change&& change) const {
    this->state_->update(std::forward<Change>(change));
  }
  T get() const {
    return this->state_->look([](const T& now) { return now; });
  }
  void close() const noexcept { this->state_->close(); }
  bool is_closed() const noexcept { return this->state_->is_closed(); }

  // One reader, which remembers the version that it has seen. Thread: any, one at a time. It must
  // not move while its changed() waits.
  class reader {
   public:
    reader(reader&&) noexcept = default;
    reader& operator=(reader&&) noexcept = default;

    // Waits until there is a value that this reader has not seen, and returns the newest. The
    // result is empty once the watch is closed. The value at the time of subscribe() counts as
    // seen.
    sync::awaiting<sync::watch_waiting<T>> changed() {
      return sync::awaiting<sync::watch_waiting<T>>(std::in_place, *state_, seen_);
    }
    // Does not wait: empty if there is nothing new.
    std::optional<T> try_changed() { return state_->take_newer(seen_); }
    // The newest value, whether it has been seen or not; it still counts as not seen.
    T get() const {
      return state_->look([](const T& now) { return now; });
    }
    bool is_closed() const noexcept { return state_->is_closed(); }

   private:
    friend watch;
    explicit reader(std::shared_ptr<state> watch) noexcept
        : state_(std::move(watch)), seen_(state_->version()) {}
    std::shared_ptr<state> state_;
    std::uint64_t seen_;
  };
  reader subscribe() const { return reader(this->state_); }
};

}  // namespace troupe
