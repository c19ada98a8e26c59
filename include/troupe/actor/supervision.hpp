// supervision: the policy for an actor that fails, the actor's parent, and the notice of its end.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "troupe/actor/cell.hpp"
#include "troupe/base/time_span.hpp"

namespace troupe {

template <class T>
class ref;

// The policy for an actor one of whose handlers throws. The runtime records the failure under each
// policy.
enum class error_policy : std::uint8_t {
  resume,   // the actor handles the next message; the default
  stop,     // the actor is destroyed; its waiting messages become dead letters
  restart,  // the object is destroyed and constructed anew; then the actor handles the next message
  // the actor is destroyed and its parent fails with the same exception; without a parent the
  // program is stopped
  escalate,
};

// How often, and after which delay, a failed actor is constructed anew.
//
// Example:
//     struct Link {
//       explicit Link(std::string to) : host(std::move(to)) {}
//       std::string host;
//     };
//     troupe::runtime rt;
//     auto link = rt.spawn<Link>({.on_error = troupe::error_policy::restart,
//                                 .restart = {.times = 5,
//                                             .per = std::chrono::minutes(1),
//                                             .backoff = std::chrono::milliseconds(100)}},
//                                "example.org");
//     rt.run();
struct restart_limit {
  // At most this many restarts within `per`. The period begins with a failure, and a new one begins
  // with the first failure after its end. The next failure within the period stops the actor.
  // Default 3 in 5 s. `times` is at least 1, `per` at least 1 ms.
  unsigned times = 3;
  time_span per = std::chrono::seconds(5);
  // How long the actor waits before it is constructed, while its messages queue: `backoff` at the
  // first failure, then twice as long for each further failure within `per`, up to backoff_max.
  // Default: no wait.
  time_span backoff{};
  time_span backoff_max = std::chrono::seconds(1);
};

// Why an actor ended: the result of ref::watch.
struct ended {
  enum class why : std::uint8_t {
    unreferenced,  // its last ref was dropped
    stopped,       // by stop() or stop_now(), or together with its parent
    failed,        // because of its error_policy
    runtime_ended,
    consumed,  // its object was given back (ref::consume)
    before,    // it had already ended when the watch reached it
  };
  ended() = default;
  explicit ended(why how, std::exception_ptr thrown = {},
                 std::shared_ptr<const void> held = {}) noexcept
      : reason(how), memory(std::move(held)), what(std::move(thrown)) {}
  ended(const ended&) = default;
  ended(ended&&) noexcept = default;
  // By swaps, so that the old members are destroyed in the right order: the exception before the
  // memory that it may refer to.
  ended& operator=(ended other) noexcept {
    std::swap(reason, other.reason);
    memory.swap(other.memory);
    std::swap(what, other.what);
    return *this;
  }

  why reason = why::runtime_ended;
  // the context of the actor that the exception may refer to; this object keeps it alive
  std::shared_ptr<const void> memory{};
  std::exception_ptr what{};  // the exception, if the reason is `failed`
};

// A ref to an actor of any class, used as a parent. It costs as much to copy and drop as a ref; it
// keeps the actor alive.
class any_ref {
 public:
  any_ref() = default;
  template <class T>
  any_ref(const ref<T>& watched) noexcept;  // implicit, for spawn_options
  any_ref(const any_ref& other) noexcept : cell_(other.cell_) {
    if (cell_ != nullptr) actor::add_ref(*cell_);
  }
  any_ref(any_ref&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  any_ref& operator=(any_ref other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~any_ref() {
    if (cell_ != nullptr && own_address_ == this) actor::drop_ref(*cell_);
  }
  explicit operator bool() const noexcept { return cell_ != nullptr; }
  actor::cell* cell() const noexcept { return cell_; }

 private:
  actor::cell* cell_ = nullptr;
  // In a co_await GCC 12 copies the bits of a temporary spawn_options, and also destroys the
  // copies. Such a copy is no ref: `own_address_` differs from its address, and its destructor does
  // nothing.
  const any_ref* own_address_ = this;
};

}  // namespace troupe
