// served_runtimes: the runtimes for which one thread of the process does something. The first one
// starts that thread, and the last one ends it.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

class runtime_core;

// Thread: any.
class served_runtimes {
 public:
  // Calls `start` for the first one. What that throws is passed on; then the runtime is not added.
  template <class Start>
  void add(runtime_core& core, Start start) {
    std::lock_guard change(changes_);
    {
      std::lock_guard lock(mutex_);
      cores_.push_back(&core);
      if (cores_.size() != 1) return;
    }
    try {
      start();
    } catch (...) {
      forget(core);
      throw;
    }
  }

  // Calls `end` after the last one. Does nothing for a runtime that was not added.
  template <class End>
  void remove(runtime_core& core, End end) noexcept {
    std::lock_guard change(changes_);
    if (forget(core)) end();
  }

  // Calls `use` with all of them, which stay meanwhile; returns what it returns.
  template <class Use>
  auto with_all(Use use) {
    std::lock_guard lock(mutex_);
    return use(std::as_const(cores_));
  }

 private:
  // True when it was the last one.
  bool forget(runtime_core& core) noexcept {
    std::lock_guard lock(mutex_);
    return std::erase(cores_, &core) != 0 && cores_.empty();
  }

  std::mutex changes_;  // held while the thread is started or ended
  std::mutex mutex_;    // guards cores_; held while they are used
  std::vector<runtime_core*> cores_;
};

}  // namespace troupe
