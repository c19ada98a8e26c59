// send_order: the order in which branches of one task send on a connection: first come, first
// served.
// Thread: the task's. The branches of a task run one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/task/event.hpp"

namespace troupe::http {

class send_order {
 public:
  // A place in the order. It is given back when the object is destroyed, even if its branch is
  // cancelled before its turn.
  class turn {
   public:
    explicit turn(send_order& order) noexcept : order_(order), number_(order.begun_++) {}
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
      if (order_.ended_ == number_) {
        order_.end_one();
      } else {
        order_.given_up_.push_back(number_);
      }
    }
    bool has_come() const noexcept { return order_.ended_ == number_; }
    task<> comes() const {
      while (!has_come()) {
        if (!order_.one_ended_) order_.one_ended_.emplace();
        order_.one_ended_->reset();
        co_await order_.one_ended_->wait();
      }
    }

   private:
    send_order& order_;
    const std::uint64_t number_;
  };

 private:
  void end_one() {
    for (bool again = true; again;) {
      ++ended_;
      const auto next = std::find(given_up_.begin(), given_up_.end(), ended_);
      again = next != given_up_.end();
      if (again) given_up_.erase(next);
    }
    if (one_ended_) one_ended_->set();
  }

  std::uint64_t begun_ = 0, ended_ = 0;
  std::vector<std::uint64_t> given_up_;
  std::optional<troupe::event> one_ended_;
};

}  // namespace troupe::http
