// select: waits until one of several streams or tasks beside the coroutine is ready. For the
// library's own use: adaptors that run several things at once are made of it.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <coroutine>
#include <memory>
#include <span>
#include <utility>

#include "troupe/streams/async_generator.hpp"
#include "troupe/task/groups/side_crowd.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe::streams {

// Runs the side calls that wait for nothing, then waits until any of the side calls is ready.
// Returns true, or false if the time ends first; with a time of zero it only runs them. Throws
// cancelled.
class select_wait {
 public:
  select_wait(std::span<tasks::side_call* const> awaited, std::chrono::nanoseconds at_most) noexcept
      : sides_(awaited), at_most_(at_most) {}
  select_wait(select_wait&&) = delete;
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> user) {
    return suspend(user.promise());
  }
  bool await_resume() const;

 private:
  bool suspend(tasks::coroutine& user);
  bool any_ready() const noexcept;
  std::span<tasks::side_call* const> sides_;
  std::chrono::nanoseconds at_most_;
  tasks::limited_side_wait wait_;
};
class select {
 public:
  explicit select(std::span<tasks::side_call* const> awaited,
                  std::chrono::nanoseconds at_most = std::chrono::nanoseconds::max()) noexcept
      : sides_(awaited), at_most_(at_most) {}
  select_wait operator co_await() const noexcept { return select_wait(sides_, at_most_); }

 private:
  std::span<tasks::side_call* const> sides_;
  std::chrono::nanoseconds at_most_;
};

// As select, for the side calls of a crowd. Those that are given here run first, if they wait for
// nothing; either may be null. If none of them is ready and `waits`, it waits until one of the
// crowd is. Throws cancelled.
class select_in_crowd {
 public:
  select_in_crowd(tasks::side_crowd& crowd, tasks::side_call* stream, tasks::side_call* begins,
                  bool waits) noexcept
      : crowd_(crowd), stream_(stream), begins_(begins), waits_(waits) {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> user) {
    return suspend(user.promise());
  }
  void await_resume() const;

 private:
  bool suspend(tasks::coroutine& user);
  tasks::side_crowd& crowd_;
  tasks::side_call* const stream_;
  tasks::side_call* const begins_;
  bool waits_;
};

// The time of the runtime that the coroutine runs in; virtual under the simulated policy.
struct time_now {
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> user) noexcept {
    ns = tasks::now_ns(*user.promise().call->at->clock);
    return false;
  }
  std::chrono::nanoseconds await_resume() const noexcept { return std::chrono::nanoseconds(ns); }
  std::int64_t ns = 0;
};

// A task that runs beside the coroutine that owns it. Dropping it cancels the task.
template <class T>
class side_task {
 public:
  side_task() = default;
  explicit side_task(task<T>&& running_task) : call_(new held(std::move(running_task))) {}
  side_task(side_task&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  side_task& operator=(side_task&& other) noexcept {
    std::swap(call_, other.call_);
    return *this;
  }
  ~side_task() {
    if (call_ != nullptr) call_->drop();
  }
  tasks::side_call& side() const noexcept { return *call_; }
  bool is_done() const noexcept { return call_->done; }
  // The result of a task that is done, or its exception.
  tasks::value_of<T> take() { return tasks::take_value(call_->running); }

 private:
  struct held final : tasks::side_call {
    explicit held(task<T>&& running_task)
        : side_call(tasks::task_access::root(running_task), &free),
          running(std::move(running_task)) {}
    static void* operator new(std::size_t bytes) { return tasks::allocate_frame(bytes); }
    static void operator delete(void* at, std::size_t bytes) noexcept {
      tasks::deallocate_frame(at, bytes);
    }
    static void free(side_call& call) noexcept { delete static_cast<held*>(&call); }
    task<T> running;
  };
  held* call_ = nullptr;
};

// A stream as the adaptors see it, which run several at once.
template <class T>
class side_stream {
 public:
  explicit side_stream(async_generator<T>&& stream) noexcept
      : stream_(std::move(stream)), promise_(access::promise(stream_)) {}
  side_stream(side_stream&&) noexcept = default;
  side_stream& operator=(side_stream&&) noexcept = default;
  // An empty generator has ended.
  bool has_ended() const noexcept { return promise_ == nullptr; }
  tasks::side_call* side() const noexcept { return &promise_->side; }
  bool is_ready() const noexcept { return !has_ended() && promise_->side.is_ready(); }
  // The value of a stream that is ready; empty, and from then on ended, at its end.
  std::optional<T> take() {
    promise_->side.taken();
    std::optional<T> value = promise_->take(tasks::outcome::arrived);
    if (!value) promise_ = nullptr;
    return value;
  }

 private:
  async_generator<T> stream_;
  async_promise<T>* promise_;
};

}  // namespace troupe::streams
