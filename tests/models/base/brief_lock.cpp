// The brief lock: three threads that each hold it twice.
// Checks X1: the data under it is checked for races.
//
// mutation: lock_relaxed
// mutation: slow_lock_relaxed
// mutation: unlock_relaxed
#include "models/relacy_atomics.hpp"

#include "troupe/base/brief_lock.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned threads = 3, rounds = 2;

struct parts {
  template <class T>
  using atomic = models::fenced_atomics::atomic<T>;
  static void wait(unsigned) { models::fenced_atomics::pause(); }
};

struct brief_lock_model : rl::test_suite<brief_lock_model, threads> {
  base::basic_brief_lock<parts> mutex;
  models::guarded<unsigned> count{0};

  void thread(unsigned) {
    for (unsigned i = 0; i < rounds; ++i) {
      mutex.lock();
      const unsigned seen = count;
      count = seen + 1;
      mutex.unlock();
    }
  }
  void after() { RL_ASSERT(count == threads * rounds); }
};

}  // namespace

int main() {
  models::weaken_if("lock_relaxed", access::exchange, "::lock()");
  models::weaken_if("slow_lock_relaxed", access::exchange, "lock_slowly");
  models::weaken_if("unlock_relaxed", access::store, "unlock");
  return models::check<brief_lock_model>(3) ? 0 : 1;
}
