// supervision: what an actor does when it fails, who its parent is, and how others hear of its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "troupe/actor/cell.hpp"

namespace troupe {

template <class T>
class ref;

// What an actor does when one of its handlers throws. The failure is recorded in each case.
enum class error_policy : std::uint8_t {
  resume,   // goes on with the next message; the default
  stop,     // is destroyed; the messages behind become dead letters
  restart,  // is destroyed and constructed anew, and goes on with the next message
  // is destroyed, and its parent fails by the same exception; without a parent the program is
  // stopped
  escalate,
};

// How often, and how soon, an actor is constructed anew.
//
// Example:
//     struct Link { explicit Link(std::string to) : host(std::move(to)) {} std::string host; };
//     troupe::runtime rt;
//     auto link = rt.spawn<Link>({.on_error = troupe::error_policy::restart,
//                                 .restart = {.times = 5, .per = std::chrono::minutes(1), .backoff
//                                 = std::chrono::milliseconds(100)}},
//                                "example.org");
//     rt.run();
struct restart_limit {
  // So many times within `per`, which begins with a failure, and again with the first one after its
  // end; the failure after that stops the actor. Default 3 in 5 s. At least 1; a time of at least 1
  // ms.
  unsigned times = 3;
  std::chrono::nanoseconds per = std::chrono::seconds(5);
  // How long it waits before it is constructed, while its messages queue: the first time, then
  // twice as long for each failure within `per`, up to backoff_max. Default: at once.
  std::chrono::nanoseconds backoff{0};
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(1);
};

// The end of an actor, and why.
struct ended {
  enum class why : std::uint8_t {
    unreferred,  // its last ref had gone
    stopped,     // by stop() or stop_now(), or with its parent
    failed,      // by its error_policy
    runtime_ended,
    consumed,  // its object was given back (ref::consume)
    before,    // it had ended when the watch reached it
  };
  ended() = default;
  explicit ended(why how, std::exception_ptr thrown = {},
                 std::shared_ptr<const void> held = {}) noexcept
      : reason(how), memory(std::move(held)), what(std::move(thrown)) {}
  ended(const ended&) = default;
  ended(ended&&) noexcept = default;
  // By exchange, so that what this one was goes in the right order: the exception before its
  // memory.
  ended& operator=(ended other) noexcept {
    std::swap(reason, other.reason);
    memory.swap(other.memory);
    std::swap(what, other.what);
    return *this;
  }

  why reason = why::runtime_ended;
  // the context of the actor that the exception may refer to; held for as long as this is
  std::shared_ptr<const void> memory{};
  std::exception_ptr what{};  // of `failed`
};

// An actor of any class, as a parent. Copies and drops as a ref does; it keeps the actor alive.
class any_ref {
 public:
  any_ref() = default;
  template <class T>
  any_ref(const ref<T>& of) noexcept;  // implicit, for spawn_options
  any_ref(const any_ref& other) noexcept : cell_(other.cell_) {
    if (cell_ != nullptr) actor::add_ref(*cell_);
  }
  any_ref(any_ref&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  any_ref& operator=(any_ref other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~any_ref() {
    if (cell_ != nullptr && here_ == this) actor::drop_ref(*cell_);
  }
  explicit operator bool() const noexcept { return cell_ != nullptr; }
  actor::cell* cell() const noexcept { return cell_; }

 private:
  actor::cell* cell_ = nullptr;
  // In a co_await GCC 12 copies the bits of a temporary spawn_options, and destroys those, too:
  // they are no ref.
  const any_ref* here_ = this;
};

}  // namespace troupe
