// Workers that fetch events inside the poller's door and serve them outside, and a searcher that
// takes events which they have not begun.
//
// Checks that each event is served once (E2), and that a worker fetches into its storage only while
// no other thread reads there (E1, D1).
//
// mutation: give_unlocked
// mutation: fetch_without_lock
// mutation: door_relaxed
// mutation: restore_relaxed
// mutation: no_heavy_fence
#include "models/relacy_atomics.hpp"

#include "sched/biased_lock.hpp"
#include "sched/fetched_events.hpp"
#include "sched/poller.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned look_max = 2;  // events a look
constexpr unsigned visits = 2;    // of the searcher; two take all events of one look

template <class Atomics>
struct thread_of_pool {
  sched::biased_lock<Atomics> lock;
  sched::basic_fetched_events<models::guarded<unsigned>, look_max, Atomics> fetched{lock};
};

// Rounds: how often each worker looks.
template <class Atomics, unsigned Workers, unsigned Rounds>
struct fetched_events_model
    : rl::test_suite<fetched_events_model<Atomics, Workers, Rounds>, Workers + 1> {
  static constexpr unsigned events_most = Workers * Rounds * look_max;

  sched::basic_door<Atomics> door;
  models::guarded<unsigned> came{0};  // only the thread that is inside touches it
  models::guarded<unsigned> served[events_most];
  thread_of_pool<Atomics> threads[Workers + 1];

  void serve(thread_of_pool<Atomics>& self) {
    models::guarded<unsigned> event;
    while (self.fetched.take(event)) served[event] = served[event] + 1;
  }

  void work(thread_of_pool<Atomics>& self) {
    for (unsigned round = 0; round < Rounds; ++round) {
      if (!door.try_enter()) continue;
      auto& storage = self.fetched.storage();
      for (unsigned i = 0; i < look_max; ++i) {
        storage[i] = came;
        came = came + 1;
      }
      self.fetched.publish(look_max);
      door.leave();
      // As the pool does: it need not call serve() when it sees none, and is then inside its lock
      // before the next look.
      if (!self.fetched.empty()) serve(self);
      if (models::mutated("fetch_without_lock")) continue;
      self.lock.enter();
      self.lock.leave();
    }
  }

  void search(thread_of_pool<Atomics>& self) {
    const bool locks = !models::mutated("give_unlocked");
    for (unsigned i = 0; i < visits; ++i) {
      thread_of_pool<Atomics>& victim = threads[i % Workers];
      if (locks && !victim.lock.try_revoke()) continue;
      const unsigned given = victim.fetched.give(self.fetched, look_max);
      if (locks) victim.lock.restore();
      if (given == 0) continue;
      self.fetched.publish(given);
      serve(self);
    }
  }

  void thread(unsigned index) { index < Workers ? work(threads[index]) : search(threads[index]); }

  void after() {
    for (unsigned event = 0; event < came; ++event) RL_ASSERT(served[event] == 1u);
  }
};

}  // namespace

int main() {
  models::weaken_if("door_relaxed", access::store, "basic_door");
  models::weaken_if("restore_relaxed", access::store, "restore");
  models::weaken_if("no_heavy_fence", access::fence, "try_revoke");
  // The numbers: workers, rounds.
  const bool holds =
      models::check<fetched_events_model<models::fenced_atomics, 1, 2>>(models::deep(3)) &&
      models::check<fetched_events_model<models::kernel_atomics, 1, 2>>(models::deep(3)) &&
      models::check<fetched_events_model<models::kernel_atomics, 2, 1>>();
  return holds ? 0 : 1;
}
