// The same as sources.hpp, of awaitables that are the program's own.
#pragma once

#include <coroutine>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "given_up/sources.hpp"

namespace troupe::test {

// Numbers for awaiters that know nothing of the library. An awaiter that was given a number, and
// whose await_resume() was not called, puts it back when it is destroyed.
class numbers {
 public:
  class waiting {
   public:
    explicit waiting(numbers& from) noexcept : from_(from) {}
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;
    ~waiting() {
      if (given_) from_.put_back(*given_);
    }
    bool await_ready() { return from_.take(*this); }
    bool await_suspend(std::coroutine_handle<> waits) { return from_.enlist(*this, waits); }
    std::optional<int> await_resume() { return std::exchange(given_, std::nullopt); }

   protected:
    friend numbers;
    numbers& from_;
    std::coroutine_handle<> waits_;
    std::optional<int> given_;
  };
  // Ends when its call is cancelled.
  class cancellable : public waiting {
   public:
    using waiting::waiting;
    bool await_cancel() noexcept { return from_.withdraw(*this); }
  };

  void add(int number) {
    change([&] { all_.push_back(number); });
  }
  void close() {
    std::deque<waiting*> left;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      left.swap(waits_);
    }
    for (waiting* const each : left) each->waits_.resume();
  }

 private:
  void put_back(int number) {
    change([&] { all_.push_front(number); });
  }
  template <class Change>
  void change(Change how) {
    std::coroutine_handle<> resumed;
    {
      const std::lock_guard lock(mutex_);
      how();
      if (!waits_.empty() && !all_.empty()) {
        waiting& oldest = *waits_.front();
        waits_.pop_front();
        oldest.given_ = all_.front();
        all_.pop_front();
        resumed = oldest.waits_;
      }
    }
    if (resumed) resumed.resume();
  }
  bool take(waiting& by) {
    const std::lock_guard lock(mutex_);
    return try_take(by);
  }
  bool try_take(waiting& by) {
    if (all_.empty()) return closed_;
    by.given_ = all_.front();
    all_.pop_front();
    return true;
  }
  bool enlist(waiting& by, std::coroutine_handle<> waits) {
    const std::lock_guard lock(mutex_);
    if (try_take(by)) return false;
    by.waits_ = waits;
    waits_.push_back(&by);
    return true;
  }
  bool withdraw(const waiting& by) noexcept {
    const std::lock_guard lock(mutex_);
    return std::erase(waits_, &by) != 0;
  }

  std::mutex mutex_;
  std::deque<int> all_;
  std::deque<waiting*> waits_;
  bool closed_ = false;
};

// Each way to give an awaiter to co_await.
struct by_member {
  numbers& from;
  numbers::cancellable operator co_await() const noexcept { return numbers::cancellable(from); }
};
struct by_function {
  numbers& from;
};
inline numbers::cancellable operator co_await(const by_function& all) noexcept {
  return numbers::cancellable(all.from);
}
// Passes the next coroutine on.
struct by_transfer {
  explicit by_transfer(numbers& from) noexcept : inner(from) {}
  bool await_ready() { return inner.await_ready(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waits) {
    return inner.await_suspend(waits) ? std::noop_coroutine() : waits;
  }
  std::optional<int> await_resume() { return inner.await_resume(); }
  bool await_cancel() noexcept { return inner.await_cancel(); }
  numbers::cancellable inner;
};

template <class Await>
class numbers_source final : public source {
 public:
  void start(int count) override { spawn(fill(all_, count)); }
  task<std::optional<int>> next() override {
    numbers& from = *all_;
    if constexpr (std::is_same_v<Await, numbers::waiting> ||
                  std::is_same_v<Await, numbers::cancellable>) {
      Await waits(from);
      co_return co_await waits;
    } else {
      const Await waits{from};
      co_return co_await waits;
    }
  }

 private:
  static task<> fill(std::shared_ptr<numbers> to, int count) {
    for (int i = 0; i < count; ++i) {
      to->add(i);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
    to->close();
  }
  const std::shared_ptr<numbers> all_ = std::make_shared<numbers>();
};
template <>
inline task<std::optional<int>> numbers_source<by_transfer>::next() {
  co_return co_await by_transfer(*all_);
}

inline std::vector<named_source> own_sources() {
  return {{"own_wait", &make_source<numbers_source<numbers::waiting>>},
          {"own_cancellable", &make_source<numbers_source<numbers::cancellable>>},
          {"own_member", &make_source<numbers_source<by_member>>},
          {"own_function", &make_source<numbers_source<by_function>>},
          {"own_transfer", &make_source<numbers_source<by_transfer>>}};
}

// Each of them in each way to give it up.
inline void check_own_sources(const runtime_options& chosen, int count) {
  for (const named_source& each : own_sources()) {
    for (const given_up_by way : ways_to_give_up) {
      const auto from = each.make();
      runtime rt(chosen);
      auto done =
          rt.spawn(check_drained(*from, way == given_up_by::helper ? count / 5 : count, way));
      rt.run();
      EXPECT_NO_THROW(done.get()) << each.name;
    }
  }
}

}  // namespace troupe::test
