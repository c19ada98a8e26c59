// availability: whether the database can be used, and the reason if it cannot.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   V1  A store that another process has taken over stays taken.
//   V2  As long as it is unknown whether a batch was stored, only the database's answer ends that
//       state: neither a timer nor a failed reading does.
//   V3  There is a reason exactly when the database cannot be used.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>

namespace troupe::durable::parts {

class availability {
 public:
  enum class state : std::uint8_t {
    works,
    away,      // a call failed; it is tried again after a pause
    in_doubt,  // a batch was perhaps stored; the database has not answered yet
    taken,     // by another process
  };

  availability() = default;
  availability(const availability&) = delete;
  availability& operator=(const availability&) = delete;

  bool works() const noexcept { return state_ == state::works; }
  bool is_in_doubt() const noexcept { return state_ == state::in_doubt; }
  bool is_taken() const noexcept { return state_ == state::taken; }
  void check() const {
    if (reason_ != nullptr) std::rethrow_exception(reason_);
  }
  // The reason, or the last failure of a batch if the database works again.
  const std::exception_ptr& last_failure() const noexcept {
    return reason_ != nullptr ? reason_ : last_failure_;
  }

  // A batch was not stored, for this reason. With `works` the next one may be.
  void batch_failed(state after, const std::exception_ptr& why) noexcept;
  void reading_failed(const std::exception_ptr& why) noexcept;
  void batch_stored() noexcept;
  // The database has answered whether the batch was stored.
  void end_doubt() noexcept;
  // The pause is over. Returns false if the database must not be used yet.
  bool try_again() noexcept;
  // The pause before the next try: it doubles until the database works.
  std::chrono::milliseconds next_pause(std::chrono::milliseconds first,
                                       std::chrono::milliseconds most) noexcept;

 private:
  void change(state to, const std::exception_ptr& why) noexcept;

  state state_ = state::works;
  std::exception_ptr reason_;
  std::exception_ptr last_failure_;
  std::chrono::milliseconds pause_{0};
};

}  // namespace troupe::durable::parts
