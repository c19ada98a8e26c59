// one_at_a_time: a call of which no second one may begin while one is under way, also when that is
// given up.
#pragma once

#include "troupe/base/error.hpp"

namespace troupe::http {

class one_at_a_time {
 public:
  // Throws usage_error, with these words.
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
