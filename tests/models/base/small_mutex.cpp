// The small mutex: three threads that each hold it twice, one of which first tries to have it
// without a wait, and sleeps that end for no reason. Checks X1 (the data under it is checked for
// races), and X2: a lost wake is a deadlock.
//
// mutation: lock_relaxed
// mutation: try_lock_relaxed
// mutation: slow_lock_relaxed
// mutation: unlock_relaxed
// mutation: silent_unlock
#include "models/relacy_atomics.hpp"

#include "troupe/base/small_mutex.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned threads = 3, rounds = 2;

struct futex : models::futex {
  static void wake_one(word& at) {
    if (!models::mutated("silent_unlock")) models::futex::wake_one(at);
  }
};

struct small_mutex_model : rl::test_suite<small_mutex_model, threads> {
  base::basic_small_mutex<models::fenced_atomics, futex> mutex;
  models::guarded<unsigned> count{0};

  void before() { futex::early_left = 2; }
  void thread(unsigned number) {
    for (unsigned i = 0; i < rounds; ++i) {
      if (number != 0 || !mutex.try_lock()) mutex.lock();
      const unsigned seen = count;
      count = seen + 1;
      mutex.unlock();
    }
  }
  void after() { RL_ASSERT(count == threads * rounds); }
};

}  // namespace

int main() {
  models::weaken_if("lock_relaxed", access::compare_exchange, "::lock()");
  models::weaken_if("try_lock_relaxed", access::compare_exchange, "::try_lock()");
  models::weaken_if("slow_lock_relaxed", access::exchange, "lock_slowly");
  models::weaken_if("unlock_relaxed", access::exchange, "unlock");
  futex::spurious = true;
  return models::check<small_mutex_model>(3) ? 0 : 1;
}
