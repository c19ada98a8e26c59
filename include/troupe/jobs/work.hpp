// work<T>: a coroutine that computes, and fork: several of them at once, on as many threads as
// there are.
#pragma once

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

// What a work comes to, once; in the work, which lies where it is awaited.
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
  // What the other one has, if anything, which then has nothing. Here is nothing yet.
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

// Frames come from the block pool, as tasks' do. Here without a call, by which a fork becomes a
// tenth cheaper, where no address of a thread-local is kept over a suspension: g++ resumes a
// coroutine by calling one function from its start, so that what that has computed ends with it.
// Clang splits it up after such computations were moved.
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

// Between the library's own parts.
struct work_access {
  // The caller runs it, and it frees itself.
  template <class T>
  static fork_frame& begin(work<T>& of) noexcept {
    of.unbegun_ = false;
    of.handle_.promise().cell = &of.cell_;
    return of.handle_.promise();
  }
  // After begin(), before it has ended.
  template <class T>
  static fork_frame& fork_frame_of(const work<T>& of) noexcept {
    return of.handle_.promise();
  }
  template <class T>
  static unit_of<T> take(work<T>& of) {
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return of.cell_.take();
    }
  }
};

// A fork where it lies: in the frame of who awaits it.
template <class Fork>
struct fork_awaiter {
  Fork& of;
  bool await_ready() const noexcept { return of.await_ready(); }
  template <class Promise>
  TROUPE_INLINE bool await_suspend(std::coroutine_handle<Promise> who) noexcept(
      std::derived_from<Promise, fork_frame>) {
    return of.await_suspend(who);
  }
  TROUPE_INLINE decltype(auto) await_resume() { return of.await_resume(); }
};

// What co_await gets of a work or of a fork. It lies in the frame of who awaits it, or on the stack
// of who blocks in get().
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
  TROUPE_INLINE bool await_suspend(std::coroutine_handle<Promise> who) noexcept {
    const auto parts = begin();
    return join_.start(who.promise(), sizeof...(T),
                       [&](std::uint32_t i) -> fork_frame& { return *parts[i]; });
  }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) {
    return run_tree_for(join_, begin(), who.promise(), tree_);
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

// The same of a number that the program finds out. Works is a vector, whose values are given
// together, or a span, in which they stay.
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
  bool await_suspend(std::coroutine_handle<Promise> who) noexcept {
    for (auto& each : works_) work_access::begin(each);
    return join_.start(who.promise(), static_cast<std::uint32_t>(works_.size()),
                       [parts = works_.data()](std::uint32_t i) -> fork_frame& {
                         return work_access::fork_frame_of(parts[i]);
                       });
  }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) {
    const std::vector<fork_frame*> parts = begin();
    return run_tree_for(join_, parts, who.promise(), tree_);
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

// A lazy coroutine that computes: it runs when it is awaited, or when get() is called, and may fork
// into others, which any worker runs beside it, and whoever waits for it. Move-only; awaited once.
// It may go on on another thread after each co_await, so a thread-local, or a mutex that is held
// over one, is a mistake. It awaits works, forks and the parallel algorithms (parts.hpp) only: what
// waits for anything else is a task, which hands its values in.
//
// Where it runs: awaited in another work, on that one's stack, like a call. Awaited in a handler or
// a task, which is suspended and holds no thread, on the workers of the runtime, in slices of half
// a millisecond, so that actors run meanwhile. get() is for plain code, posted procedures and
// lazies: the calling thread takes part, in nothing but this work, and sleeps only while others run
// what is left of it; usage_error in a handler. The workers that help are those of the runtime of
// the posted procedure or blocking call, or that the thread made last; without a runtime all runs
// in the calling thread.
//
// An exception reaches who awaits it. Depth: as deep as memory allows; the stack is bounded. Cost:
// about 10 ns, a frame from the block pool. A stop that discards, and the end of the actor that
// waits, cancel it: what is not begun is dropped, each fork that comes throws troupe::cancelled. A
// work that is never awaited is just destroyed. With g++ 12 the warnings of task hold here, too.
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

  // A value that it has goes with it. Not while it runs: fork(span) knows where it lies.
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

  // Blocks until it is done. Throws its exception; usage_error in a handler; std::bad_alloc.
  T get() && {
    check();
    return jobs::fork_of<true, T>(std::move(*this)).get();
  }
  jobs::fork_of<true, T> operator co_await() && {
    check();
    return jobs::fork_of<true, T>(std::move(*this));
  }
  // Throws usage_error when it was moved from, or has begun.
  void check() const {
    if (!unbegun_) [[unlikely]]
      jobs::refuse_begun_work();
  }
  // The value that fork(span) has given it. usage_error when it has none: not yet, it threw or was
  // dropped, or it was moved from.
  T take() {
    if (!cell_.there()) [[unlikely]]
      jobs::refuse_work_without_value();
    return cell_.take();
  }

 private:
  friend promise_type;
  friend jobs::work_access;
  explicit work(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {
    // What else a frame starts with is two pointers: so a part is found without its type.
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

// Runs the works at once, and gives all their values (std::monostate for void) when the last one
// has ended. The first is run here, like a call, then the next one that no other thread has taken,
// and so on: the last are the first to be taken. If one throws, those that nobody has begun are
// dropped, those that run throw troupe::cancelled at their next fork, and the first exception is
// thrown when all have ended. co_await it in a work or a task, or block in get(). Cost: about 5 ns
// more than the works. Throws usage_error for a work that was moved from, and when it is awaited
// again.
//
// A vector gives a vector. A span leaves the values in the works, also when one of them throws:
// then take() gives each.
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
  for (const work<T>& one : parts) one.check();
  return jobs::fork_of_many<T, std::vector<work<T>>>(std::move(parts));
}
template <class T>
[[nodiscard]] jobs::fork_of_many<T, std::span<work<T>>> fork(std::span<work<T>> parts) {
  for (const work<T>& one : parts) one.check();
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
