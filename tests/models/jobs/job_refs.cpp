// Handles of a job that is done, and a queue that still keeps the job: all of them drop their refs
// at the same time, or the queue drops its ref last.
// Checks H1 and H2: the job is freed once, after everything that all holders did, and its value is
// destroyed with the last handle.
//
// mutation: looks_once
// mutation: handle_unpublished
// mutation: handle_without_acquire
// mutation: kept_unpublished
// mutation: load_without_acquire
#include "models/relacy_atomics.hpp"

#include "jobs/lazies/job_refs.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uint32_t>;
using refs = jobs::job_refs<word>;

// `Beside`: the queue drops its ref at once. Otherwise it waits until the handles are gone, and
// finds that the value is gone, too.
template <bool Beside>
struct refs_model : rl::test_suite<refs_model<Beside>, 3> {
  word word_{2 * refs::handle + refs::kept};
  models::guarded<int> value_{7};
  models::guarded<int> block_[3];
  models::latch dropped_[2];
  unsigned freed_ = 0, forgotten_ = 0;  // the model's own, not checked for races

  void free() {
    RL_ASSERT(++freed_ == 1);
    for (models::guarded<int>& each : block_) each = 0;
    value_ = 0;
  }

  void thread(unsigned index) {
    block_[index] = 1;
    if (index == 2) {
      if (!Beside) {
        for (models::latch& each : dropped_) each.wait();
        RL_ASSERT(forgotten_ == 1);
      }
      if (refs(word_).drop_kept()) free();
      return;
    }
    RL_ASSERT(value_ == 7);
    const auto forget = [this] {
      RL_ASSERT(++forgotten_ == 1 && freed_ == 0);
      value_ = 0;
    };
    if (models::mutated("looks_once")) {
      if (word_.load(std::memory_order_acquire) == refs::handle + refs::kept) forget();
      if (word_.fetch_sub(refs::handle, std::memory_order_acq_rel) == refs::handle) free();
    } else if (refs(word_).drop_handle(forget)) {
      free();
    }
    dropped_[index].open();
  }

  void after() { RL_ASSERT(freed_ == 1); }
};

}  // namespace

int main() {
  models::weaken_if("handle_unpublished", access::compare_exchange, "::drop_handle",
                    std::memory_order_release);
  models::weaken_if("handle_without_acquire", access::compare_exchange, "::drop_handle",
                    std::memory_order_acquire);
  models::weaken_if("kept_unpublished", access::arithmetic, "::drop_kept",
                    std::memory_order_release);
  models::weaken_if("load_without_acquire", access::load, "::drop_");
  return models::check<refs_model<true>>(4) && models::check<refs_model<false>>(4) ? 0 : 1;
}
