// One thread writes events while another one reads them.
// Checks E1 and E2: what a reader takes for an event is an event, it is whole, and it is the one
// that the reader asked for.
//
// mutation: put_unpublished
// mutation: parts_relaxed
// mutation: read_relaxed
// mutation: written_relaxed
// mutation: read_unchecked
#include "models/relacy_atomics.hpp"

#include "observe/event_ring.hpp"

namespace {

using namespace troupe;
using models::access;

struct atomics {
  template <class T>
  using atomic = models::atomic<T>;
};

constexpr std::size_t size = 2;

struct event_ring_model : rl::test_suite<event_ring_model, 2> {
  using ring = observe::event_ring<atomics, size>;
  alignas(ring::slot) std::byte room_[size * sizeof(ring::slot)];
  ring ring_{room_};

  void after() {
    for (std::size_t i = 0; i < size; ++i)
      std::destroy_at(reinterpret_cast<ring::slot*>(room_) + i);
  }

  void thread(unsigned index) {
    if (index == 0) {
      for (std::uint64_t i = 0; i < 3; ++i) ring_.put({i + 1, i + 1, i + 1, i + 1});
      return;
    }
    {
      const std::uint64_t written = ring_.written();
      for (std::uint64_t at = ring::oldest(written); at < written; ++at) {
        observe::event_data read;
        if (!ring_.read(at, read) && !models::mutated("read_unchecked")) continue;
        RL_ASSERT(read.ticks == at + 1 && read.id == at + 1 && read.text == at + 1 &&
                  read.kind == at + 1);
      }
    }
  }
};

}  // namespace

int main() {
  models::weaken_if("put_unpublished", access::store, "::put(");
  models::weaken_if("parts_relaxed", access::store, "::fill(");
  models::weaken_if("read_relaxed", access::load, "::read(");
  models::weaken_if("written_relaxed", access::load, "::written(");
  return models::check<event_ring_model>(models::deep(4)) ? 0 : 1;
}
