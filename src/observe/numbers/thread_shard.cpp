#include "observe/numbers/thread_shard.hpp"

#include <bit>
#include <cstdint>
#include <mutex>

#include "base/threads/at_fork.hpp"

namespace troupe::observe {
namespace {

static_assert(thread_shard::own_max == 64);  // the bits of `taken`
std::uint64_t taken = 0;                     // guarded by the mutex

// Never destroyed: threads may end after the program's statics.
std::mutex& taken_mutex() {
  static std::mutex& instance = [] -> std::mutex& {
    auto& created = *new std::mutex;
    base::hold_at_fork(created);
    return created;
  }();
  return instance;
}

}  // namespace

constinit thread_local std::uint8_t thread_shard::number = 0;

// At the thread's end its shard is free for another thread. Later counts of the thread go to
// the shared shard.
struct thread_shard::leaving {
  bool has_one = false;
  ~leaving() {
    if (!has_one) return;
    const unsigned own = number - 1U;
    number = shared + 1;
    const std::lock_guard lock(taken_mutex());
    taken &= ~(std::uint64_t{1} << own);
  }
};

thread_local thread_shard::leaving
    thread_shard::at_end;  // in a function it would have 8 bytes more

TROUPE_NOINLINE std::size_t thread_shard::take() noexcept {
  number = shared + 1;
  const std::lock_guard lock(taken_mutex());
  const auto free = static_cast<unsigned>(std::countr_one(taken));
  if (free == own_max) return shared;
  taken |= std::uint64_t{1} << free;
  number = static_cast<std::uint8_t>(free + 1);
  at_end.has_one = true;
  return free;
}

}  // namespace troupe::observe
