#include "base/threads/at_fork.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>

namespace troupe::base {
namespace {

struct held_mutex {
  std::mutex* mutex = nullptr;
  void (*forget)() noexcept = nullptr;
};

struct held_mutexes {
  std::mutex mutex;  // taken first, given back last
  std::array<held_mutex, 64> all{};
  std::size_t count = 0;

  void lock() noexcept {
    mutex.lock();
    for (std::size_t i = 0; i < count; ++i) all[i].mutex->lock();
  }
  void unlock(bool in_child) noexcept {
    for (std::size_t i = count; i > 0; --i) {
      const held_mutex& held = all[i - 1];
      if (in_child && held.forget != nullptr) held.forget();
      held.mutex->unlock();
    }
    mutex.unlock();
  }
  // Never destroyed: threads may fork after the program's statics.
  static held_mutexes& get() {
    static constinit held_mutexes instance;  // trivially destructible
    return instance;
  }
};

}  // namespace

void hold_at_fork(std::mutex& mutex, void (*forget)() noexcept) noexcept {
  static const int registered = ::pthread_atfork([] { held_mutexes::get().lock(); },
                                                 [] { held_mutexes::get().unlock(false); },
                                                 [] { held_mutexes::get().unlock(true); });
  static_cast<void>(registered);  // no memory: then a fork is as it would be without
  held_mutexes& held = held_mutexes::get();
  const std::lock_guard lock(held.mutex);
  if (held.count < held.all.size()) held.all[held.count++] = {&mutex, forget};
}

}  // namespace troupe::base
