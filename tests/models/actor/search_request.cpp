// The request for a search for deadlocks (src/actor/waits/search_request.hpp) while an actor with a
// wait is being parked.
//
// Actors begin a wait, and are parked a little later: no search sees them before that. Each asks
// for a search when its wait begins, and again after it was parked. One thread searches as often as
// it is asked to: it stands for the one timer.
// Checks R1: at the end a search has seen each wait, or a search is still to come.
//
// mutation: asks_before_parking
// mutation: asks_only_at_the_beginning
// mutation: parks_unfenced
// mutation: searches_unfenced
// mutation: begins_after_the_look
#include "models/relacy_atomics.hpp"

#include "actor/waits/search_request.hpp"

namespace {

using namespace troupe;
using models::access;

template <class Atomics, unsigned Actors, unsigned Searches>
struct search_request_model
    : rl::test_suite<search_request_model<Atomics, Actors, Searches>, Actors + 1> {
  actor::search_request<Atomics> request;
  models::atomic<bool> parked[Actors];
  bool seen[Actors]{};  // the model's own, not checked for races
  bool armed = false;   // the timer; a mutex guards the real one

  void arm() { armed = true; }

  void wait(unsigned index) {
    if (request.ask()) arm();
    const bool early = models::mutated("asks_before_parking");
    if (early && request.ask()) arm();
    parked[index].store(true, std::memory_order_release);
    if (!early && !models::mutated("asks_only_at_the_beginning") && request.ask_when_parked())
      arm();
  }

  void look() {
    for (unsigned i = 0; i < Actors; ++i) {
      if (parked[i].load(std::memory_order_relaxed)) seen[i] = true;
    }
  }

  void search() {
    armed = false;
    if (models::mutated("begins_after_the_look")) {
      look();
      static_cast<void>(request.begin());
    } else {
      static_cast<void>(request.begin());
      look();
    }
  }

  void thread(unsigned index) {
    if (index < Actors) return wait(index);
    for (unsigned i = 0; i < Searches; ++i) {
      models::pass_time();
      if (armed) search();
    }
  }

  void after() {
    if (armed) {
      search();
      armed = false;
    }
    for (const bool one : seen) RL_ASSERT(one);
  }
};

}  // namespace

int main() {
  models::weaken_if("parks_unfenced", access::fence, "ask_when_parked");
  models::weaken_if("searches_unfenced", access::fence, "begin");
  // The numbers: actors, and searches that run beside them.
  const bool holds = models::check<search_request_model<models::fenced_atomics, 1, 1>>(3) &&
                     models::check<search_request_model<models::fenced_atomics, 1, 2>>(3) &&
                     models::check<search_request_model<models::fenced_atomics, 2, 2>>() &&
                     (models::mutated("parks_unfenced") ||
                      (models::check<search_request_model<models::kernel_atomics, 1, 2>>(3) &&
                       models::check<search_request_model<models::kernel_atomics, 2, 2>>()));
  return holds ? 0 : 1;
}
