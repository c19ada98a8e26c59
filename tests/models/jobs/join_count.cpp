// A forker, and parts that other threads end: one of these threads continues as the forker.
// Checks F1 and F2: exactly one thread continues, it sees what all others have done, and no thread
// touches the fork after that.
//
// mutation: end_unpublished
// mutation: end_without_acquire
// mutation: forker_forgets_itself
// mutation: added_too_late
#include "models/relacy_atomics.hpp"

#include "troupe/jobs/join_count.hpp"

namespace {

using namespace troupe;
using models::access;

// The forker sees `Seen` parts end on its own stack. Each of the others is ended by a thread of its
// own. The parts are counted from the beginning, or each is added when it begins, as in a shared
// loop.
template <unsigned Others, unsigned Seen, bool Added = false>
struct join_model : rl::test_suite<join_model<Others, Seen, Added>, Others + 1> {
  jobs::join_count<models::fenced_atomics> left_;
  models::guarded<int> values_[Others + Seen + 1];
  models::latch begun_[Others];
  models::guarded<bool> there_{true};  // the fork, until one thread has continued
  unsigned went_on_ = 0;               // the model's own, not checked for races

  void go_on(bool last) {
    if (!last) return;
    ++went_on_;
    for (auto& value : values_) RL_ASSERT(value == 1);
    there_ = false;
  }

  void end_part(unsigned index) {
    values_[index] = 1;
    RL_ASSERT(there_);
    go_on(left_.end(1));
  }

  void thread(unsigned index) {
    if (index != 0) {
      begun_[index - 1].wait();
      return end_part(index);
    }
    left_.begin(Added ? Seen + 1 : Others + Seen + 1);
    for (models::latch& part : begun_) {
      const bool late = models::mutated("added_too_late");
      if (Added && !late) left_.add();
      part.open();
      if (Added && late) left_.add();
    }
    values_[0] = 1;
    for (unsigned i = 0; i < Seen; ++i) values_[Others + 1 + i] = 1;
    RL_ASSERT(there_);
    go_on(left_.end(models::mutated("forker_forgets_itself") ? Seen : Seen + 1));
  }

  void after() { RL_ASSERT(went_on_ == 1); }
};

}  // namespace

int main() {
  models::weaken_if("end_unpublished", access::arithmetic, "::end(", std::memory_order_release);
  models::weaken_if("end_without_acquire", access::arithmetic, "::end(", std::memory_order_acquire);
  const bool holds = models::check<join_model<1, 1>>(4) && models::check<join_model<2, 1>>(3) &&
                     models::check<join_model<1, 0, true>>(4) &&
                     models::check<join_model<2, 0, true>>(3);
  return holds ? 0 : 1;
}
