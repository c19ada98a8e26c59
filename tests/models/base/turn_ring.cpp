// One thread writes records of turns while another one reads them.
// Checks F1 and F2: what a reader takes for a record is whole, and it is the one that the reader
// asked for.
//
// mutation: put_unpublished
// mutation: parts_relaxed
// mutation: read_relaxed
// mutation: written_relaxed
// mutation: read_unchecked
#include "models/relacy_atomics.hpp"

#include "observe/flight/turn_ring.hpp"

namespace {

using namespace troupe;
using models::access;

struct atomics {
  template <class T>
  using atomic = models::atomic<T>;
};

constexpr std::size_t size = 2;

struct turn_ring_model : rl::test_suite<turn_ring_model, 2> {
  using ring = observe::turn_ring<atomics>;
  ring::number_word numbers_[size]{};
  ring::code_word codes_[size]{};
  ring ring_{numbers_, codes_, size};

  void before() {
    for (std::size_t i = 0; i < size; ++i) {
      // order: relaxed  no other thread yet
      numbers_[i].store(0, std::memory_order_relaxed);
      codes_[i].store(0, std::memory_order_relaxed);
    }
  }

  void thread(unsigned index) {
    if (index == 0) {
      for (std::uint16_t i = 1; i <= 3; ++i) ring_.put({i, i});
      return;
    }
    const std::uint64_t written = ring_.written();
    for (std::uint64_t at = ring_.oldest(written); at < written; ++at) {
      observe::turn_record one;
      if (!ring_.read(at, one) && !models::mutated("read_unchecked")) continue;
      RL_ASSERT(one.number == at + 1 && one.code == at + 1);
    }
  }
};

}  // namespace

int main() {
  models::weaken_if("put_unpublished", access::store, "::put(");
  models::weaken_if("parts_relaxed", access::store, "::fill(");
  models::weaken_if("read_relaxed", access::load, "::read(");
  models::weaken_if("written_relaxed", access::load, "::written(");
  return models::check<turn_ring_model>(models::deep(4)) ? 0 : 1;
}
