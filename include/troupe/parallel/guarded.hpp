// guarded<T>: a shared value behind a read-write lock that suspends tasks and blocks no thread.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/type_name.hpp"
#include "troupe/context/check.hpp"
#include "troupe/context/promote.hpp"
#include "troupe/parallel/read_write_lock.hpp"
#include "troupe/task/future.hpp"

namespace troupe {

template <class T>
class guarded;

namespace sharing {

template <class T>
struct guarded_state {
  template <class... Args>
  explicit guarded_state(Args&&... args) : value(std::forward<Args>(args)...) {}
  T value;
  // in checked builds: the error of the last writer, which stored a pointer that it should not have
  std::exception_ptr spoilt;
  read_write_lock lock;
};

#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
inline constexpr bool checks_references = true;
#else
inline constexpr bool checks_references = false;
#endif

// In checked builds, throws if the value is used without the lock.
inline void require_inside(const pass& held) {
  if (checks_references && !held.inside()) {
    throw unguarded_error(
        "troupe: guarded: the value is used by an access that was released or moved from; get "
        "another one");
  }
}

template <class T>
struct is_persisted : std::false_type {};
template <class T>
struct is_persisted<persisted<T>> : std::true_type {};

}  // namespace sharing

// The right to read, until it is destroyed. Movable. Lifetime: it may outlive its guarded.
template <class T>
class reading {
 public:
  const T& operator*() const {
    sharing::require_inside(pass_);
    return state_->value;
  }
  const T* operator->() const { return std::addressof(**this); }
  void release() noexcept { pass_.leave(); }

 private:
  friend guarded<T>;
  static constexpr auto how = sharing::access::read;
  explicit reading(const std::shared_ptr<sharing::guarded_state<T>>& state) noexcept
      : state_(state.get()), pass_(state, state->lock, how) {}
  const sharing::guarded_state<T>* state_;
  sharing::pass pass_;
};

// The right to read and to write, until it is destroyed. An assignment from an in_context handle
// promotes the object, or persists it if the value is a persisted<U>. In checked builds, other
// pointers into a context that are found in the value are a foreign_context_error, which release()
// throws, or else the next readers get.
template <class T>
class writing {
 public:
  writing(writing&&) noexcept = default;
  writing& operator=(writing&& other) noexcept {
    end();
    state_ = other.state_;
    pass_ = std::move(other.pass_);
    return *this;
  }
  ~writing() { end(); }

  T& operator*() const {
    sharing::require_inside(pass_);
    return state_->value;
  }
  T* operator->() const { return std::addressof(**this); }

  template <class U>
  writing& operator=(const in_context<U>& handle) {
    if constexpr (sharing::is_persisted<T>::value) {
      **this = auto_escape(handle);
    } else {
      **this = promote_to<T>(handle);
    }
    return *this;
  }
  template <class Value>
  requires(std::is_assignable_v<T&, Value> &&
           !std::is_same_v<std::remove_cvref_t<Value>, writing>) writing&
  operator=(Value&& value) {
    **this = std::forward<Value>(value);
    return *this;
  }

  // Throws foreign_context_error; see the class.
  void release() {
    if (!pass_.inside()) return;
    auto& state = *state_;
    std::exception_ptr spoilt = check();
    state.spoilt = spoilt;
    pass_.leave();
    if (spoilt != nullptr) std::rethrow_exception(std::move(spoilt));
  }

 private:
  friend guarded<T>;
  static constexpr auto how = sharing::access::write;
  explicit writing(const std::shared_ptr<sharing::guarded_state<T>>& state) noexcept
      : state_(state.get()), pass_(state, state->lock, how) {}
  void end() noexcept {
    if (sharing::checks_references && pass_.inside()) state_->spoilt = check();
    pass_.leave();
  }
  std::exception_ptr check() const noexcept {
    if constexpr (sharing::checks_references) {
      try {
        contexts::check_references(std::addressof(state_->value), sizeof(T),
                                   base::type_name<guarded<T>>());
      } catch (const foreign_context_error& found) {
        return std::make_exception_ptr(found);
      }
    }
    return nullptr;
  }
  sharing::guarded_state<T>* state_;
  sharing::pass pass_;
};

// A value with a read-write lock. Several readers may hold it together, a writer holds it alone, in
// the order of their arrival. Copies refer to the same value, and may be sent. Thread: any. The
// value belongs to no context: if T is a pointer or a view, or has a std::pmr allocator, this is a
// compile error. Only reading and writing give access to the value.
//
// Errors: a handler that waits for access while it holds the same value waits without end, which is
// a stall. Cost: about 100 ns without a wait; try_read and try_write half of that.
//
// Example:
//     troupe::task<> note(troupe::guarded<std::vector<std::string>> lines, std::string line) {
//       auto inside = co_await lines.write();
//       inside->push_back(line);
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::guarded<std::vector<std::string>> lines;
//       for (const char* line : {"one", "two"}) rt.spawn(note(lines, line));
//       rt.run();
//       std::cout << (*lines.try_read())->size() << '\n';
//     }
template <class T>
class guarded {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>,
                "troupe: guarded: T must be a type of objects that can change");
  static_assert(
      is_sendable<T>::value,
      "troupe: guarded: T is or has a pointer, a view or a std::pmr allocator; the value is shared "
      "by work on any thread and must own all its data: use a std container, or troupe::persisted");

 public:
  template <class... Args>
  requires(std::constructible_from<T, Args...> &&
           !(sizeof...(Args) == 1 && (std::same_as<std::remove_cvref_t<Args>, guarded> &&
                                      ...))) explicit guarded(Args&&... args)
      : state_(std::make_shared<sharing::guarded_state<T>>(std::forward<Args>(args)...)) {}
  guarded() requires std::default_initializable<T>
      : state_(std::make_shared<sharing::guarded_state<T>>()) {}

  // Waits for access until there is no writer, and no earlier request waits. co_await it,
  // optionally with timeout() or stop(), or block in get() on a thread of your own. A future that
  // is dropped gives the access back.
  [[nodiscard]] future<reading<T>> read() const { return enter<reading<T>>(); }
  // Waits for access until there is neither a reader nor another writer.
  [[nodiscard]] future<writing<T>> write() const { return enter<writing<T>>(); }

  // Calls `f` with the value, as soon as there is neither a reader nor another writer, and returns
  // a future of its result. Needs no coroutine: a handler or plain code may call it, and may drop
  // the future. Thread: `f` runs like a callback of then(): in a later turn of the actor that
  // called this, elsewhere on the thread that gives the access. Errors: an exception from `f` is in
  // the future.
  template <class Function>
  auto change(Function&& f) const {
    using result = std::invoke_result_t<std::decay_t<Function>&, T&>;
    static_assert(!tasks::runs_when_awaited<std::remove_cvref_t<result>>,
                  "troupe: guarded::change: this is a coroutine, which would never run: co_await "
                  "write() in it instead");
    auto given = std::make_shared<promise<result>>();
    future<result> later = given->get_future();
    write().then(
        [given, f = std::forward<Function>(f)](writing<T> inside) mutable {
          try {
            if constexpr (std::is_void_v<result>) {
              f(*inside);
              given->set_value();
            } else {
              given->set_value(f(*inside));
            }
          } catch (...) {
            given->set_exception(std::current_exception());
          }
        },
        [given](std::exception_ptr failure) { given->set_exception(std::move(failure)); });
    return later;
  }

  // Return nothing if they would have to wait. In checked builds try_read throws
  // foreign_context_error if the last writer stored a pointer that it should not have.
  [[nodiscard]] std::optional<reading<T>> try_read() const {
    if (!state_->lock.try_enter(sharing::access::read)) return std::nullopt;
    reading<T> inside(state_);
    if (sharing::checks_references && state_->spoilt != nullptr)
      std::rethrow_exception(state_->spoilt);
    return inside;
  }
  [[nodiscard]] std::optional<writing<T>> try_write() const {
    if (!state_->lock.try_enter(sharing::access::write)) return std::nullopt;
    return writing<T>(state_);
  }

 private:
  using state = std::shared_ptr<sharing::guarded_state<T>>;

  template <class Access>
  static void admit(promise<Access>& promised, const state& at, Access inside) noexcept {
    if constexpr (sharing::checks_references && std::is_same_v<Access, reading<T>>) {
      if (at->spoilt != nullptr) {
        std::exception_ptr spoilt = at->spoilt;
        inside.release();
        return promised.set_exception(std::move(spoilt));
      }
    }
    promised.set_value(std::move(inside));
  }

  template <class Access>
  struct waiting final : sharing::read_write_lock::waiter {
    explicit waiting(const state& where) : waiter(Access::how), at(where) {}
    bool gave_up() const noexcept override { return granted.abandoned(); }
    void enter() noexcept override { admit(granted, at, Access(at)); }
    state at;
    promise<Access> granted;
  };

  // All memory is allocated before the promise exists, since a lack of memory must not drop the
  // promise.
  template <class Access>
  future<Access> enter() const {
    if (state_->lock.try_enter(Access::how)) {
      Access inside(state_);
      promise<Access> granted;
      future<Access> later = granted.get_future();
      admit(granted, state_, std::move(inside));
      return later;
    }
    auto mine = std::make_unique<waiting<Access>>(state_);
    future<Access> later = mine->granted.get_future();
    state_->lock.enter(std::move(mine));
    return later;
  }

  state state_;
};

// Copies refer to the same value and own it.
template <class T>
struct is_sendable<guarded<T>> : std::true_type {};

}  // namespace troupe
