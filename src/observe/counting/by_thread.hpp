// by_thread: an object of T for each thread that needs it. Its thread changes the object
// without a locked instruction; a reader looks at the objects of all threads.
//
// Invariants
//   T1  an object is never freed before the by_thread is: a reader needs no count of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/thread_name.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::observe {

template <class T>
class by_thread {
 public:
  // order: relaxed  only unequal
  by_thread() noexcept : number_(objects_made.fetch_add(1, std::memory_order_relaxed) + 1) {}
  by_thread(const by_thread&) = delete;
  by_thread& operator=(const by_thread&) = delete;

  // The calling thread's object; null when memory has run out. A thread's first call makes it.
  TROUPE_INLINE T* here() noexcept {
    if (of_thread.number == number_) [[likely]]
      return of_thread.own;
    return find_here();
  }
  template <class Look>
  void for_each_thread(Look look) const {
    std::lock_guard lock(mutex_);
    for (const auto& entry : threads_) look(*entry.own);
  }

 private:
  // The object that the calling thread used last, and the by_thread to which it belongs.
  struct last_used {
    std::uint64_t number = 0;
    T* own = nullptr;
  };
  static constinit thread_local last_used of_thread [[gnu::tls_model("initial-exec")]];
  static constinit inline std::atomic<std::uint64_t> objects_made{0};
  struct one_thread {
    std::thread::id thread;
    unsigned worker;
    std::unique_ptr<T> own;
  };

  // A thread that has ended may leave its id, and with it its object, to another thread with the
  // same number of a worker.
  TROUPE_NOINLINE T* find_here() noexcept {
    const std::thread::id self = std::this_thread::get_id();
    std::lock_guard lock(mutex_);
    T* own = nullptr;
    for (const one_thread& entry : threads_) {
      if (entry.thread == self && entry.worker == base::worker_number) own = entry.own.get();
    }
    try {
      if (own == nullptr) {
        threads_.push_back({self, base::worker_number, std::make_unique<T>()});
        own = threads_.back().own.get();
      }
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    of_thread = {number_, own};
    return own;
  }

  const std::uint64_t number_;  // no two objects of a process have the same
  mutable std::mutex mutex_;
  std::vector<one_thread> threads_;
};

template <class T>
constinit thread_local typename by_thread<T>::last_used by_thread<T>::of_thread{};

}  // namespace troupe::observe
