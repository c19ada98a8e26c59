// The permits of a lock for readers and writers: two readers that take one of two permits each, and
// a writer that wants both; a party may also give up its wait. Checks S1 and S3 (the data under the
// permits is checked for races), S2 (while a party waits no other takes permits), and S4: a waiter
// that is forgotten is a deadlock.
//
// mutation: take_relaxed
// mutation: give_relaxed
// mutation: grant_relaxed
// mutation: sum_relaxed
// mutation: no_mutex
#include "models/relacy_atomics.hpp"

#include "troupe/sync/permits.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned threads = 3, rounds = 2;

struct list_mutex {
  void lock() {
    if (!models::mutated("no_mutex")) mutex.lock();
  }
  void unlock() {
    if (!models::mutated("no_mutex")) mutex.unlock();
  }
  models::mutex mutex;
};

struct party : sync::permit_waiter {
  party() {
    wake = [](sync::waiter& self) noexcept { static_cast<party&>(self).woken.open(); };
  }
  models::latch woken;
};

struct permits_model : rl::test_suite<permits_model, threads> {
  sync::basic_permits<models::fenced_atomics, list_mutex> permits{2};
  models::guarded<unsigned> data{0};
  party parties[threads][rounds];

  // True when the party holds its permits.
  bool take(party& self) {
    if (!permits.take_or_wait(self)) return true;
    permits.while_waiting(self, [this] { RL_ASSERT(!permits.try_take(1)); });
    if (rl::rand(2) == 0 && permits.withdraw(self)) return false;
    self.woken.wait();
    return true;
  }
  void thread(unsigned index) {
    const bool writes = index == 2;
    for (unsigned i = 0; i < (writes ? 1U : rounds); ++i) {
      party& self = parties[index][i];
      self.wants = writes ? 2 : 1;
      if (!take(self)) continue;
      const unsigned seen = data;
      if (writes) data = seen + 1;
      permits.give(self.wants);
    }
  }
  void after() { RL_ASSERT(permits.free() == 2); }
};

}  // namespace

int main() {
  models::weaken_if("take_relaxed", access::compare_exchange, "try_take");
  models::weaken_if("give_relaxed", access::compare_exchange, "give_at_once");
  models::weaken_if("grant_relaxed", access::store, "grant");
  models::weaken_if("sum_relaxed", access::load, "free_of_waited");
  return models::check<permits_model>(models::deep(3)) ? 0 : 1;
}
