// An owner that pushes and pops beside searchers, with fences of their own and with the kernel's.
// Checks D1 to D3: each part is given out once and whole, and no slot is written while a searcher
// may read it.
//
// mutation: push_unpublished
// mutation: steal_without_acquire
// mutation: no_fence_of_owner
// mutation: no_fence_of_steal
// mutation: lock_without_acquire
// mutation: unlock_without_release
// mutation: room_by_a_look
// mutation: put_back_unpublished
// mutation: pop_without_acquire
// mutation: empty_by_a_look
#include "models/relacy_atomics.hpp"

#include "troupe/jobs/work_deque.hpp"

namespace {

using namespace troupe;
using models::access;

struct part {
  models::guarded<int> written{0};
  models::guarded<int> ran{0};  // two threads that got the same part would race here
};

// The owner pushes and pops as `moves` says: P pushes, p pops, and e means that the pushed parts
// stay, since no searcher wants them.
template <class Atomics, unsigned Thieves, unsigned Parts>
struct deque_model : rl::test_suite<deque_model<Atomics, Thieves, Parts>, Thieves + 1> {
  static inline const char* moves = "";
  static inline bool wanted = true;  // whether searchers want parts
  jobs::work_deque<part, Atomics> deque_{2};
  part parts_[Parts];
  unsigned given_[Parts] = {};  // the model's own, not checked for races

  void take(part* one) {
    if (one == nullptr) return;
    RL_ASSERT(one->written == 7);
    one->ran = one->ran + 1;
    ++given_[one - parts_];
  }

  void own() {
    unsigned next = 0;
    for (const char* move = moves; *move != '\0'; ++move) {
      if (*move == 'p') {
        take(deque_.pop());
        continue;
      }
      if (*move == 'e') {
        RL_ASSERT(!(models::mutated("empty_by_a_look") ? deque_.count() == 0 : deque_.is_empty()));
        continue;
      }
      parts_[next].written = 7;
      RL_ASSERT(deque_.reserve(models::mutated("room_by_a_look") ? 0 : 1));
      deque_.push(parts_[next++]);
    }
  }

  void thread(unsigned index) {
    if (index == 0) return own();
    take(deque_.steal([](const part& one) { return one.ran == 0 && wanted; }));
  }

  void after() {
    while (part* one = deque_.pop()) take(one);
    for (const unsigned times : given_) RL_ASSERT(times == 1);
  }
};

template <class Atomics, unsigned Thieves, unsigned Parts>
bool check(const char* moves, unsigned preemptions, bool wanted = true) {
  using model = deque_model<Atomics, Thieves, Parts>;
  model::moves = moves;
  model::wanted = wanted;
  return models::check<model>(preemptions);
}

}  // namespace

int main() {
  models::weaken_if("push_unpublished", access::store, "::push(");
  models::weaken_if("steal_without_acquire", access::load, "::steal(");
  models::weaken_if("no_fence_of_owner", access::fence, "::pop(");
  models::weaken_if("no_fence_of_steal", access::fence, "::steal(");
  models::weaken_if("lock_without_acquire", access::exchange, "::lock(");
  models::weaken_if("unlock_without_release", access::store, "::unlock(");
  models::weaken_if("put_back_unpublished", access::store, "::steal(", std::memory_order_release);
  models::weaken_if("pop_without_acquire", access::load, "::pop(");
  const bool holds = check<models::fenced_atomics, 1, 2>("PPpp", 3) &&
                     check<models::kernel_atomics, 1, 2>("PPpp", 3) &&
                     check<models::kernel_atomics, 1, 3>("PPpPp", 3) &&
                     check<models::kernel_atomics, 1, 3>("PPPp", 2) &&
                     check<models::fenced_atomics, 2, 2>("PPpp", 2) &&
                     check<models::kernel_atomics, 1, 1>("Pp", 4, false) &&
                     check<models::fenced_atomics, 1, 2>("PPpp", 3, false) &&
                     check<models::kernel_atomics, 1, 1>("Pep", 3, false);
  return holds ? 0 : 1;
}
