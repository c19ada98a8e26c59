// Persisted objects in a context: the context rolls back over them while their holders read them
// and drop them.
//
// The context's thread writes memory, makes a keep with its own share and one for each holder, and
// rolls back. If the context is alone, it uses the memory again. Otherwise it leaves the memory to
// the keep and drops its share. In the second model the holders' keep has an older keep as its
// base, whose memory the holders read, too, and the context rolls back over the first and then over
// the other.
// Checks E1 and E2 of src/context/blocks/share_count.hpp: the memory is freed once, the thread that
// frees it sees it whole, and no thread reads it after it was used again.
//
// mutation: alone_relaxed
// mutation: drop_unpublished
// mutation: drop_without_acquire
// mutation: left_after_drop
// mutation: counted_by_load
// mutation: base_not_counted
#include "models/relacy_atomics.hpp"

#include "context/blocks/share_count.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uint32_t>;

struct count : contexts::share_count<word> {
  explicit count(word& in) : share_count(in), word_(in) {}
  bool drop() {
    if (!models::mutated("counted_by_load")) return share_count::drop();
    const std::uint32_t before = word_.load(std::memory_order_acquire);
    word_.store(before - 1, std::memory_order_release);
    return before == 1;
  }
  word& word_;
};

// As in src/context/keep.hpp: the memory that is left to the keep, and the keep that is its base.
struct keep {
  word shares{1};
  // The context has left the memory to the keep: its finalizers and blocks are the keep's.
  models::guarded<int> left{0};
  models::guarded<int> memory{0};  // what the context has allocated since its snapshot
  keep* base = nullptr;
  unsigned freed = 0;  // the model's own, not checked for races

  static void drop(keep* one) {
    while (one != nullptr && count(one->shares).drop()) {
      RL_ASSERT(++one->freed == 1);
      RL_ASSERT(one->left == 1 && one->memory == 7);
      one->memory = 0;  // destructors run, and the block is used for something else
      one = one->base;
    }
  }
  // Called by the context's thread. Returns whether the memory was left to the keep.
  bool roll_back() {
    if (count(shares).alone()) {
      memory = 8;  // used again
      ++freed;
      return false;
    }
    if (models::mutated("left_after_drop")) {
      if (!count(shares).drop()) left = 1;
      return true;
    }
    left = 1;
    drop(this);
    return true;
  }
  void read() { RL_ASSERT(memory == 7); }
};

template <unsigned Holders>
struct one_level : rl::test_suite<one_level<Holders>, 1 + Holders> {
  keep top;
  models::latch persisted[Holders];

  void thread(unsigned index) {
    if (index == 0) {
      top.memory = 7;
      for (auto& one : persisted) {
        count(top.shares).add();
        one.open();
      }
      static_cast<void>(top.roll_back());
      return;
    }
    persisted[index - 1].wait();
    top.read();
    keep::drop(&top);
  }
  void after() { RL_ASSERT(top.freed == 1); }
};

struct two_levels : rl::test_suite<two_levels, 3> {
  keep below, top;
  models::latch persisted[2];

  void thread(unsigned index) {
    if (index == 0) {
      below.memory = 7;
      top.memory = 7;
      if (!models::mutated("base_not_counted")) count(below.shares).add();
      top.base = &below;
      for (auto& one : persisted) {
        count(top.shares).add();
        one.open();
      }
      // A keep that has no holder gives up its share of the older keep at once.
      if (!top.roll_back() && count(below.shares).drop()) RL_ASSERT(false);
      static_cast<void>(below.roll_back());
      return;
    }
    persisted[index - 1].wait();
    top.read();
    below.read();
    keep::drop(&top);
  }
  void after() { RL_ASSERT(top.freed == 1 && below.freed == 1); }
};

}  // namespace

int main() {
  models::weaken_if("alone_relaxed", access::load, "::alone(");
  models::weaken_if("drop_unpublished", access::arithmetic, "::drop(", std::memory_order_release);
  models::weaken_if("drop_without_acquire", access::arithmetic, "::drop(",
                    std::memory_order_acquire);
  const bool holds = models::check<one_level<1>>(3) && models::check<one_level<2>>() &&
                     models::check<two_levels>();
  return holds ? 0 : 1;
}
