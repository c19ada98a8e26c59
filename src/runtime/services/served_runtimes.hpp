// served_runtimes: the runtimes for which one thread of the process does something. The first one
// starts that thread, and the last one ends it.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

// `Runtime`: the object by which the thread uses a runtime. Thread: any.
template <class Runtime>
class served_runtimes {
 public:
  // Calls `start` for the first one. Its exceptions pass through; then the runtime is not added.
  template <class Start>
  void add(Runtime& runtime, Start start) {
    std::lock_guard change(changes_);
    {
      std::lock_guard lock(mutex_);
      runtimes_.push_back(&runtime);
      if (runtimes_.size() != 1) return;
    }
    try {
      start();
    } catch (...) {
      forget(runtime);
      throw;
    }
  }

  // Calls `end` after the last one. Does nothing for a runtime that was not added.
  template <class End>
  void remove(Runtime& runtime, End end) noexcept {
    std::lock_guard change(changes_);
    if (forget(runtime)) end();
  }

  // Calls `use` with all of them, which stay meanwhile, and returns its result.
  template <class Use>
  auto with_all(Use use) {
    std::lock_guard lock(mutex_);
    return use(std::as_const(runtimes_));
  }

 private:
  // True when it was the last one.
  bool forget(Runtime& runtime) noexcept {
    std::lock_guard lock(mutex_);
    return std::erase(runtimes_, &runtime) != 0 && runtimes_.empty();
  }

  std::mutex changes_;  // held while the thread is started or ended
  std::mutex mutex_;    // guards runtimes_; held while they are used
  std::vector<Runtime*> runtimes_;
};

}  // namespace troupe
