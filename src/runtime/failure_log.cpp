#include "runtime/runtime_core.hpp"

namespace troupe {

void failure_log::add(failure one) {
  std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(one));
}

std::vector<failure> failure_log::all() const {
  std::lock_guard lock(mutex_);
  return {waiting_.begin(), waiting_.end()};
}

failure failure_log::thrown() const {
  std::lock_guard lock(mutex_);
  return thrown_;
}

void failure_log::clear() {
  std::lock_guard lock(mutex_);
  waiting_.clear();
}

void failure_log::throw_first() {
  std::exception_ptr what;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    thrown_ = std::move(waiting_.front());
    waiting_.pop_front();
    what = thrown_.what;
  }
  std::rethrow_exception(what);
}

}  // namespace troupe
