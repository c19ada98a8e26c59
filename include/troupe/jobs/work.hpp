// work<T>: a coroutine that computes. fork: runs several works at once, on all available threads.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/jobs/fork_frame.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/result.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

template <class T = void>
class work;

namespace jobs {

[[noreturn]] void refuse_begun_work();
[[noreturn]] void refuse_work_without_value();

// The result of a work, set once. It lies in the work, which lies where it is awaited.
template <class T>
class work_cell {
 public:
  static constexpr bool moves_safely = std::is_nothrow_move_constructible_v<tasks::stored<T>>;
  work_cell() noexcept {}
  work_cell(const work_cell&) = delete;
  work_cell& operator=(const work_cell&) = delete;
  ~work_cell() {
    if (there_) std::destroy_at(&value_);
  }
  template <class... Value>
  void set(Value&&... value) {
    if constexpr (std::is_reference_v<T>) {
      std::construct_at(&value_, std::addressof(value)...);
    } else {
      std::construct_at(&value_, std::forward<Value>(value)...);
    }
    there_ = true;
  }
  // Moves the other cell's value here, if any; the other cell is then empty. This cell must be
  // empty.
  void move_from(work_cell& other) noexcept(moves_safely) {
    if (!other.there_) return;
    std::construct_at(&value_, std::move(other.value_));
    there_ = true;
    std::destroy_at(&other.value_);
    other.there_ = false;
  }
  bool there() const noexcept { return there_; }
  T take() {
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*value_);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(value_);
    }
  }

 private:
  union {
    tasks::stored<T> value_;
  };
  bool there_ = false;
};

template <class T>
inline constexpr bool is_fork<work<T>> = true;

// Coroutine frames come from the block pool, like task frames. With g++ they are allocated inline
// here, which makes a fork a tenth cheaper. That is safe where no address of a thread-local is kept
// across a suspension: g++ resumes a coroutine by a call of one function from its start, which
// discards values that were computed before the suspension. Clang splits the coroutine after such
// computations were moved.
#if defined(__clang__)
inline void* allocate_work(std::size_t bytes) { return tasks::allocate_frame(bytes); }
inline void deallocate_work(void* frame, std::size_t bytes) noexcept {
  tasks::deallocate_frame(frame, bytes);
}
#else
TROUPE_INLINE void* allocate_work(std::size_t bytes) { return memory::allocate(bytes); }
TROUPE_INLINE void deallocate_work(void* frame, std::size_t bytes) noexcept {
  memory::deallocate(frame, bytes);
}
#endif

struct work_promise_base : fork_frame {
  static void* operator new(std::size_t bytes) { return allocate_work(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    deallocate_work(frame, bytes);
  }

  std::suspend_always initial_suspend() const noexcept { return {}; }
  fork_frame_end final_suspend() const noexcept { return {rested}; }
  void unhandled_exception() noexcept { within->fail(std::current_exception()); }

  template <class Awaitable>
  Awaitable&& await_transform(Awaitable&& awaited) noexcept {
    static_assert(is_fork<std::remove_cvref_t<Awaitable>>,
                  "troupe: a work awaits works (co_await std::move(the_work)), forks and parallel "
                  "loops, for it runs on any "
                  "thread; wait for anything else in a task, and hand the values in");
    return std::forward<Awaitable>(awaited);
  }
};

template <class T>
struct work_promise final : work_promise_base {
  work<T> get_return_object() noexcept;
  template <class Value = T>
  requires std::constructible_from<tasks::stored<T>, Value> || std::is_reference_v<T>
  void return_value(Value&& value) { cell->set(std::forward<Value>(value)); }
  work_cell<T>* cell;
};
template <>
struct work_promise<void> final : work_promise_base {
  work<void> get_return_object() noexcept;
  void return_void() noexcept { cell->set(); }
  work_cell<void>* cell;
};

template <class T>
using unit_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// Access for other parts of the library; not for users.
struct work_access {
  // The caller must run the coroutine, which frees itself.
  template <class T>
  static fork_frame& begin(work<T>& source) noexcept {
    source.unbegun_ = false;
    source.handle_.promise().cell = &source.cell_;
    return source.handle_.promise();
  }
  // Only after begin() and before the end of the work.
  template <class T>
  static fork_frame& fork_frame_of(const work<T>& source) noexcept {
    return source.handle_.promise();
  }
  template <class T>
  static unit_of<T> take(work<T>& source) {
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return source.cell_.take();
    }
  }
};

// The awaiter of a fork that stays where it is: in the frame of the coroutine that awaits it.
template <class Fork>
struct fork_awaiter {
  Fork& awaited;
  bool await_ready() const noexcept { return awaited.await_ready(); }
  template <class Promise>
  TROUPE_INLINE bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept(
      std::derived_from<Promise, fork_frame>) {
    return awaited.await_suspend(awaiting);
  }
  TROUPE_INLINE decltype(auto) await_resume() { return awaited.await_resume(); }
};

// The awaitable of a work or of a fork. It lies in the frame of the coroutine that awaits it, or on
// the stack of the thread that blocks in get().
template <bool Alone, class... T>
class fork_of {
 public:
  explicit fork_of(work<T>&&... parts) noexcept : works_(std::move(parts)...) {}
  fork_of(fork_of&&) = delete;
  ~fork_of() {
    if (tree_ != nullptr) [[unlikely]]
      free_tree(*tree_);
  }

  bool await_ready() const noexcept { return false; }
  template <std::derived_from<fork_frame> Promise>
  TROUPE_INLINE bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    const auto parts = begin();
    return join_.start(awaiting.promise(), sizeof...(T),
                       [&](std::uint32_t i) -> fork_frame& { return *parts[i]; });
  }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    return run_tree_for(join_, begin(), awaiting.promise(), tree_);
  }
  decltype(auto) await_resume() {
    join_.check();
    if constexpr (Alone) {
      return std::get<0>(works_).take();
    } else {
      return std::apply(
          [](auto&... each) { return std::tuple<unit_of<T>...>(work_access::take(each)...); },
          works_);
    }
  }
  // For plain code, posted procedures and lazies: as work::get.
  fork_awaiter<fork_of> operator co_await() && { return check(), fork_awaiter<fork_of>{*this}; }
  decltype(auto) get() && {
    run_tree_here(join_, (check(), begin()));
    return await_resume();
  }

 private:
  void check() const {
    std::apply([](const auto&... each) { (each.check(), ...); }, works_);
  }
  std::array<fork_frame*, sizeof...(T)> begin() noexcept {
    return std::apply(
        [](auto&... each) {
          return std::array<fork_frame*, sizeof...(T)>{&work_access::begin(each)...};
        },
        works_);
  }

  std::tuple<work<T>...> works_;
  fork_join join_;
  tree_of_task* tree_ = nullptr;
};
template <bool Alone, class... T>
inline constexpr bool is_fork<fork_of<Alone, T...>> = true;

// The same for a number of works that is known only at run time. Works is a vector, whose values
// are returned together, or a span, in which the values stay.
template <class T, class Works>
class fork_of_many {
 public:
  explicit fork_of_many(Works&& parts) noexcept : works_(std::move(parts)) {}
  fork_of_many(fork_of_many&&) = delete;
  ~fork_of_many() {
    if (tree_ != nullptr) [[unlikely]]
      free_tree(*tree_);
  }

  bool await_ready() const noexcept { return works_.empty(); }
  template <std::derived_from<fork_frame> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    for (auto& each : works_) work_access::begin(each);
    return join_.start(awaiting.promise(), static_cast<std::uint32_t>(works_.size()),
                       [parts = works_.data()](std::uint32_t i) -> fork_frame& {
                         return work_access::fork_frame_of(parts[i]);
                       });
  }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const std::vector<fork_frame*> parts = begin();
    return run_tree_for(join_, parts, awaiting.promise(), tree_);
  }
  auto await_resume() {
    if (!works_.empty()) join_.check();
    if constexpr (std::same_as<Works, std::vector<work<T>>>) {
      std::vector<unit_of<T>> values;
      values.reserve(works_.size());
      for (auto& each : works_) values.push_back(work_access::take(each));
      return values;
    }
  }
  fork_awaiter<fork_of_many> operator co_await() && {
    return check(), fork_awaiter<fork_of_many>{*this};
  }
  auto get() && {
    if (check(); !works_.empty()) run_tree_here(join_, begin());
    return await_resume();
  }

 private:
  void check() const { std::ranges::for_each(works_, &work<T>::check); }
  std::vector<fork_frame*> begin() {
    std::vector<fork_frame*> parts;
    parts.reserve(works_.size());
    for (auto& each : works_) parts.push_back(&work_access::begin(each));
    return parts;
  }

  Works works_;
  fork_join join_;
  tree_of_task* tree_ = nullptr;
};
template <class T, class Works>
inline constexpr bool is_fork<fork_of_many<T, Works>> = true;

}  // namespace jobs

// A lazy coroutine that computes. It runs when it is awaited, or when get() is called, and may fork
// into other works, which any worker may run in parallel. Move-only; awaited once. After each
// co_await it may continue on another thread: it must not use a thread-local, or hold a mutex,
// across a co_await. It awaits only works, forks and the parallel algorithms (parts.hpp); a task
// must wait for all other events, and pass the values in.
//
// Thread: awaited in another work, it runs on that work's stack, like a call. Awaited in a handler
// or a task, which is suspended and blocks no thread, it runs on the workers of the runtime, in
// slices of half a millisecond, so that actors run in between. get() is for plain code, posted
// procedures and lazies: the calling thread takes part, in this work only, and sleeps only while
// other threads run the remaining parts; usage_error in a handler. Help comes from the workers of
// the runtime of the posted procedure or blocking call, or of the runtime that the thread created
// last; without a runtime all runs in the calling thread.
//
// Cost: about 10 ns, and a frame from the block pool. Depth: limited only by memory; the stack is
// bounded. Errors: an exception reaches the coroutine that awaits the work. A stop that discards,
// or the end of the actor that waits, cancels the work: parts that have not begun are dropped, and
// each later fork throws troupe::cancelled. Lifetime: a work that is never awaited is just
// destroyed. With g++ 12 the warnings of task apply here too.
//
// Example:
//     troupe::work<long> fib(int n) {
//       if (n < 2) co_return n;
//       auto [one, two] = co_await troupe::fork(fib(n - 1), fib(n - 2));
//       co_return one + two;
//     }
//     int main() {
//       troupe::runtime rt;
//       std::cout << fib(20).get() << '\n';
//     }
template <class T>
class [[nodiscard]] work {
 public:
  using value_type = T;
  using promise_type = jobs::work_promise<T>;

  // A value moves with the work. Do not move a work while it runs: fork(span) refers to its
  // address.
  work(work&& other) noexcept(jobs::work_cell<T>::moves_safely) { move_from(other); }
  work& operator=(work&& other) noexcept(jobs::work_cell<T>::moves_safely) {
    if (this == &other) return *this;
    const work before(std::move(*this));
    move_from(other);
    return *this;
  }
  ~work() {
    if (unbegun_) handle_.destroy();
  }

  // Blocks until the work is done. Throws its exception; usage_error in a handler; std::bad_alloc.
  T get() && {
    check();
    return jobs::fork_of<true, T>(std::move(*this)).get();
  }
  jobs::fork_of<true, T> operator co_await() && {
    check();
    return jobs::fork_of<true, T>(std::move(*this));
  }
  // Throws usage_error if the work was moved from or has begun.
  void check() const {
    if (!unbegun_) [[unlikely]]
      jobs::refuse_begun_work();
  }
  // The value that fork(span) has left here. Throws usage_error if there is none: the work has not
  // run yet, it threw or was dropped, or it was moved from.
  T take() {
    if (!cell_.there()) [[unlikely]]
      jobs::refuse_work_without_value();
    return cell_.take();
  }

 private:
  friend promise_type;
  friend jobs::work_access;
  explicit work(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {
    // A coroutine's frame begins with two pointers before the promise, by which code without the
    // type of a part can find its promise.
    static_assert(alignof(promise_type) <= 2 * sizeof(void*),
                  "troupe: work: its value is over-aligned; put it into a std::unique_ptr");
  }
  void move_from(work& other) noexcept(jobs::work_cell<T>::moves_safely) {
    handle_ = other.handle_;
    unbegun_ = std::exchange(other.unbegun_, false);
    if (!unbegun_) [[unlikely]]
      cell_.move_from(other.cell_);
  }

  std::coroutine_handle<promise_type> handle_;
  bool unbegun_ = true;  // a frame that has begun frees itself
  jobs::work_cell<T> cell_;
};

// Runs the works in parallel, and returns all their values (std::monostate for void) when the last
// one has ended. The calling thread runs the first work, like a call, then the next work that no
// other thread has taken, and so on. Other threads take the last works first. co_await it in a work
// or a task, or block in get(). Cost: about 5 ns more than the works.
//
// Errors: if one throws, works that no thread has begun are dropped, running ones throw
// troupe::cancelled at their next fork, and the first exception is thrown when all have ended.
// usage_error for a work that was moved from, and for a fork that is awaited a second time.
//
// A vector of works gives a vector of values. With a span the values stay in the works, even if one
// of them throws; then take() returns each value.
//
// Example:
//     troupe::work<int> square(int n) { co_return n * n; }
//     troupe::work<int> sum() {
//       auto [one, two] = co_await troupe::fork(square(1), square(2));
//       std::vector<troupe::work<int>> more;
//       for (int n = 3; n < 10; ++n) more.push_back(square(n));
//       int all = one + two;
//       for (const int each : co_await troupe::fork(std::move(more))) all += each;
//       co_return all;
//     }
//     int main() { std::cout << sum().get() << '\n'; }
template <class... T>
requires(sizeof...(T) != 0) [[nodiscard]] jobs::fork_of<false, T...> fork(work<T>... parts) {
  (parts.check(), ...);
  return jobs::fork_of<false, T...>(std::move(parts)...);
}
template <class T>
[[nodiscard]] jobs::fork_of_many<T, std::vector<work<T>>> fork(std::vector<work<T>> parts) {
  for (const work<T>& part : parts) part.check();
  return jobs::fork_of_many<T, std::vector<work<T>>>(std::move(parts));
}
template <class T>
[[nodiscard]] jobs::fork_of_many<T, std::span<work<T>>> fork(std::span<work<T>> parts) {
  for (const work<T>& part : parts) part.check();
  return jobs::fork_of_many<T, std::span<work<T>>>(std::move(parts));
}

namespace jobs {

template <class T>
work<T> work_promise<T>::get_return_object() noexcept {
  return work<T>(std::coroutine_handle<work_promise>::from_promise(*this));
}
inline work<void> work_promise<void>::get_return_object() noexcept {
  return work<void>(std::coroutine_handle<work_promise>::from_promise(*this));
}

}  // namespace jobs

}  // namespace troupe
