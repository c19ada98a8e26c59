// kept_socket: the bytes that a WebSocket of a client keeps of its peer, as an account in the
// client's ledger (docs/protocols/accounts.md). The peer is the origin.
//
// A WebSocket that is asked to end may be used by a task just then, and its task may never use it
// again. Therefore the task marks when the bytes are at rest: while it waits for more, and between
// two receives unless the program reads a message. Any thread frees bytes that are at rest; other
// bytes are freed by the task, at its next step.
//
// Invariants
//   K1  the task touches the bytes only between take_up() and lay_down(); another thread only while
//       they are at rest, under `mutex_`.
//
// Threads: the task's that uses the WebSocket; free_ended() on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "http/client/client_resources.hpp"
#include "http/client/kept_answer.hpp"
#include "troupe/http/client_error.hpp"
#include "troupe/http/transport.hpp"

namespace troupe::http {

// The transport of such a WebSocket.
class kept_transport : public transport {
 public:
  // The kept bytes were freed: ends the connection below, or wakes its reader. Thread: any.
  virtual void end_freed() noexcept = 0;

 protected:
  ~kept_transport() = default;
};

class kept_socket final : private kept_holder {
 public:
  kept_socket(std::shared_ptr<client_resources> core, std::string origin, std::string where,
              kept_transport& below) noexcept
      : core_(std::move(core)),
        origin_(std::move(origin)),
        where_(std::move(where)),
        below_(below) {}
  ~kept_socket() override {
    if (is_listed_) core_->holders.remove(*this);
  }

  void frees_by(transport::free_function free, websocket* keeper) noexcept {
    const std::lock_guard lock(mutex_);
    free_ = free;
    keeper_ = keeper;
  }
  // So many bytes are kept now. Without memory for the account they are not counted.
  void count(std::size_t bytes) noexcept {
    if (use_ == use::freed) return;
    try {
      kept_.count(
          core_->kept, [this] { return origin_; }, bytes);
    } catch (const std::bad_alloc&) {
      return;
    }
    if (!is_listed_ && kept_.is_counted()) {
      is_listed_ = true;
      core_->holders.add(*this);
    }
    core_->holders.free_ended();
  }
  void lay_down() noexcept {
    const std::lock_guard lock(mutex_);
    if (use_ == use::by_task) use_ = use::at_rest;
    free_if_ended();
  }
  bool take_up() noexcept {
    const std::lock_guard lock(mutex_);
    const bool was_at_rest = use_ == use::at_rest;
    if (was_at_rest) use_ = use::by_task;
    return was_at_rest;
  }
  bool is_ended() const noexcept { return is_over_ || kept_.was_ended(); }
  // Too much was kept of it elsewhere. Call it by the task.
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  void check() const {
    if (!is_ended()) return;
    throw client_error(client_failure::too_much_kept, where_,
                       "too much is kept, and most of it by this WebSocket");
  }

 private:
  // Of the bytes.
  enum class use : std::uint8_t { by_task, at_rest, freed };

  void note_end() noexcept override { core_->holders.note_end(); }
  void free_ended() noexcept override {
    const std::lock_guard lock(mutex_);
    free_if_ended();
  }
  // Under the mutex.
  void free_if_ended() noexcept {
    if (use_ != use::at_rest || !is_ended()) return;
    use_ = use::freed;
    if (free_ != nullptr) free_(*keeper_);
    kept_.end();
    below_.end_freed();
  }

  const std::shared_ptr<client_resources> core_;
  const std::string origin_, where_;
  kept_transport& below_;

  std::mutex mutex_;
  transport::free_function free_ = nullptr;
  websocket* keeper_ = nullptr;
  use use_ = use::by_task;
  bool is_over_ = false;
  bool is_listed_ = false;  // the task's
  kept_answer kept_{this};
};

}  // namespace troupe::http
