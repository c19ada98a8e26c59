// wire_health: whether bytes can still be sent and received on a connection.
//
// Threads: the connection's task and its children, one at a time.
// Invariants
//   H1  After something was given up in its middle nothing more is sent: its peer would take that
//       for the rest.
#pragma once

#include <cstdint>

namespace troupe::http {

class wire_health {
 public:
  bool is_broken() const noexcept {
    return state_ == state::broken || state_ == state::broken_in_part;
  }
  // A part of something was sent, and the rest will never be.
  bool is_cut_off() const noexcept {
    return state_ == state::cut_off || state_ == state::broken_in_part;
  }
  void break_off() noexcept { state_ = is_cut_off() ? state::broken_in_part : state::broken; }
  void cut_off() noexcept { state_ = is_broken() ? state::broken_in_part : state::cut_off; }
  // It broke by the end of an operation that its server had asked to end.
  void mend() noexcept { state_ = is_cut_off() ? state::cut_off : state::works; }

 private:
  enum class state : std::uint8_t { works, cut_off, broken, broken_in_part };
  state state_ = state::works;
};

}  // namespace troupe::http
