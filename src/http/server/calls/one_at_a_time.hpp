// one_at_a_time: a guard for a call that must not begin while an earlier one is under way. It also
// releases the call when the call is cancelled.
#pragma once

#include "troupe/base/error.hpp"

namespace troupe::http {

class one_at_a_time {
 public:
  // Whether a call is under way.
  class slot {
   private:
    friend one_at_a_time;
    bool is_taken_ = false;
  };
  one_at_a_time(slot& under_way, const char* refused)
      : one_at_a_time(under_way.is_taken_, refused) {}
  // Throws usage_error with the text `refused` when a call is under way.
  one_at_a_time(bool& under_way, const char* refused) : under_way_(under_way) {
    if (under_way) throw usage_error(refused);
    under_way = true;
  }
  one_at_a_time(const one_at_a_time&) = delete;
  one_at_a_time& operator=(const one_at_a_time&) = delete;
  ~one_at_a_time() { under_way_ = false; }

 private:
  bool& under_way_;
};

}  // namespace troupe::http
