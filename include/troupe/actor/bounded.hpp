// bounded: how a sender waits for room in a bounded mailbox. The library's own; users call ref::send.
#pragma once

#include <utility>

#include "troupe/actor/cell.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

// Room for one message in a bounded mailbox; given back if it is not used.
class room {
 public:
  explicit room(cell& to) noexcept;
  room(room&& other) noexcept : to_(std::exchange(other.to_, nullptr)), used_(other.used_) {}
  room& operator=(room&&) = delete;
  ~room();
  void use() noexcept { used_ = true; }

 private:
  cell* to_;
  bool used_ = false;
};

void wait_for_room(cell& to, promise<room>&& waiter);

}  // namespace troupe::actor
