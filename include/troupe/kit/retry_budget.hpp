// retry_budget: how many retries a program may make, against how many calls.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>

namespace troupe {

// Options of a retry_budget. A value that makes no sense is an option_error.
struct retry_budget_options {
  // Retries for each call, over the long run. Default 0.1: when a service is down, it gets 1.1
  // times the usual number of requests, and not `attempts` times as many. 0 to 1000.
  double ratio = 0.1;
  // Retries in each second that are allowed even without calls, so that a client with few calls can
  // also retry. Default 1. 0 to a million.
  double per_second = 1;
  // The largest number of unused retries that is kept, and the number at the beginning. Default 10;
  // at least 1, at most a million.
  double kept = 10;
};

// A token bucket of retries that many calls share: each call puts `ratio` of a token into it, each
// retry takes a whole token, and without a token the call fails with its last error. Therefore
// retries cannot multiply an overload. Give it to retry() in retry_policy::budget. Copies refer to
// the same budget.
//
// Thread: any. Cost: 5 ns for a call, 35 ns for a retry. Errors: option_error.
//
// Example:
//     troupe::retry_budget budget({.ratio = 0.2});
//     std::cout << budget.left() << '\n';  // 10
class retry_budget {
 public:
  explicit retry_budget(retry_budget_options options = {});

  // Counts a call that is not a retry. retry() calls this and take() itself.
  void count_call() const;
  // Takes a token for one retry. Returns false if there is none.
  bool take() const;
  // The number of retries that are allowed now.
  double left() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe
