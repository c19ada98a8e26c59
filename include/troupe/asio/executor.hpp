// executor: an executor of Asio over the pool of a runtime.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <memory>
#include <utility>

#include "troupe/asio/library.hpp"
#include "troupe/runtime/attachment.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe {
namespace parts {
inline namespace TROUPE_ASIO_ABI {

// The services of Asio that strands, timers and sockets on the executor use.
class asio_context final : public detail::attachment, public asio_library::execution_context {
 public:
  static asio_context& of(runtime& rt) {
    return static_cast<asio_context&>(detail::attach(rt, &key, &make));
  }
  void close() noexcept override { shutdown(); }

 private:
  static inline const char key = 0;
  static std::unique_ptr<attachment> make() { return std::make_unique<asio_context>(); }
};

}  // namespace TROUPE_ASIO_ABI
}  // namespace parts

inline namespace TROUPE_ASIO_ABI {

// An executor of Asio: its functions run on the pool of a runtime, as runtime::post() runs them.
// For asio::post(), bind_executor() and strands, and for timers and sockets that need no io_context
// of their own: Asio then waits for them on a thread of its own.
//
// Thread: any. It never runs a function before execute() returns, and asio::dispatch() is
// asio::post(). Functions run in any order, at the same time; a strand orders them. The program is
// not out of work while a function waits or runs, or work is outstanding (make_work_guard()).
// Errors: an exception from a function is a failure, as from post(). Lifetime: as with an
// io_context, the runtime must outlive the executor's use; a function that waits when the runtime
// ends is destroyed without a call. Cost: as post().
//
// Example:
//     troupe::runtime rt;
//     asio::post(troupe::asio_executor(rt), [] { std::cout << "on the pool\n"; });
//     rt.run();
class asio_executor {
  using lib_execution_context = parts::asio_library::execution_context;

 public:
  explicit asio_executor(runtime& rt) : rt_(&rt), context_(&parts::asio_context::of(rt)) {}
  asio_executor(const asio_executor& other) noexcept
      : rt_(other.rt_), context_(other.context_), tracks_(other.tracks_) {
    if (tracks_) open_ = rt_->hold();
  }
  asio_executor(asio_executor&& other) noexcept = default;
  asio_executor& operator=(asio_executor other) noexcept {
    rt_ = other.rt_;
    context_ = other.context_;
    tracks_ = other.tracks_;
    open_ = std::move(other.open_);
    return *this;
  }
  ~asio_executor() = default;

  template <class Function>
  void execute(Function&& function) const {
    rt_->post(std::forward<Function>(function));
  }

  friend bool operator==(const asio_executor& left, const asio_executor& right) noexcept {
    return left.rt_ == right.rt_ && left.tracks_ == right.tracks_;
  }
  friend bool operator!=(const asio_executor& left, const asio_executor& right) noexcept {
    return !(left == right);
  }

  // Asio's properties of executors.
  lib_execution_context& query(parts::asio_library::execution::context_t) const noexcept {
    return *context_;
  }
  static constexpr parts::asio_library::execution::blocking_t query(
      parts::asio_library::execution::blocking_t) noexcept {
    return parts::asio_library::execution::blocking.never;
  }
  static constexpr parts::asio_library::execution::mapping_t query(
      parts::asio_library::execution::mapping_t) noexcept {
    return parts::asio_library::execution::mapping.thread;
  }
  std::size_t query(parts::asio_library::execution::occupancy_t) const noexcept {
    return rt_->workers();
  }
  parts::asio_library::execution::outstanding_work_t query(
      parts::asio_library::execution::outstanding_work_t) const noexcept {
    using work = parts::asio_library::execution::outstanding_work_t;
    return tracks_ ? work(work::tracked) : work(work::untracked);
  }
  asio_executor require(parts::asio_library::execution::blocking_t::never_t) const noexcept {
    return *this;
  }
  asio_executor require(
      parts::asio_library::execution::outstanding_work_t::tracked_t) const noexcept {
    return asio_executor(*this, true);
  }
  asio_executor require(
      parts::asio_library::execution::outstanding_work_t::untracked_t) const noexcept {
    return asio_executor(*this, false);
  }

 private:
  asio_executor(const asio_executor& other, bool tracks) noexcept
      : rt_(other.rt_), context_(other.context_), tracks_(tracks) {
    if (tracks_) open_ = rt_->hold();
  }

  runtime* rt_;
  lib_execution_context* context_;
  bool tracks_ = false;
  troupe::hold open_;  // while it tracks outstanding work
};

}  // namespace TROUPE_ASIO_ABI
}  // namespace troupe
