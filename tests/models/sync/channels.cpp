// A channel with room for one value: a sender that sends several values and then closes the
// channel, another sender, and a receiver. Checks C3 (the values of a sender arrive in their order)
// and C4: a party that waits when the channel is closed is told, and none is left in a list; each
// value that was sent is received.
//
// mutation: no_mutex
// mutation: no_close
#include "models/relacy_atomics.hpp"

#include "troupe/sync/channels/channel_state.hpp"
#include "troupe/task/groups/race.hpp"

namespace {

using namespace troupe;

struct list_mutex {
  void lock() {
    if (!models::mutated("no_mutex")) mutex.lock();
  }
  void unlock() {
    if (!models::mutated("no_mutex")) mutex.unlock();
  }
  models::mutex mutex;
};

struct race_parts {
  template <class T>
  using atomic = models::atomic<T>;
};
struct parts {
  template <class T>
  using atomic = models::atomic<T>;
  using mutex = list_mutex;
  using race = tasks::race_word<race_parts>;
};

struct token {
  token(unsigned given) : value(given) {}
  token(token&& other) noexcept : value(static_cast<unsigned>(other.value)) { other.value = 0U; }
  models::guarded<unsigned> value;
};

using state = sync::channel_state<token, parts>;

template <class Waiter>
struct party : Waiter {
  party() {
    Waiter::wake = [](sync::waiter& self) noexcept { static_cast<party&>(self).woken.open(); };
  }
  models::latch woken;
};
using sender = party<sync::sending_waiter<token, parts>>;
using receiver = party<sync::receiving_waiter<token, parts>>;

struct channel_model : rl::test_suite<channel_model, 3> {
  static constexpr unsigned ordered = 3, other = 8;
  state channel{1};
  models::guarded<unsigned> sent[2], got;

  // True if the value was sent; false if the channel is closed.
  bool send(unsigned value) {
    token mine(value);
    sender self;
    self.value = &mine;
    if (channel.send_or_wait(self, [] {})) self.woken.wait();
    return self.end == sync::send_end::sent;
  }
  void send_in_order() {
    unsigned sum = 0;
    for (unsigned value = 1; value <= ordered; ++value) {
      if (send(value)) sum += value;
    }
    sent[0] = sum;
    if (!models::mutated("no_close")) channel.close();
  }
  void receive_all() {
    unsigned sum = 0, last = 0;
    for (;;) {
      receiver self;
      if (channel.receive_or_wait(self, [] {})) self.woken.wait();
      if (!self.value) break;
      const unsigned value = self.value->value;
      sum += value;
      if (value == other) continue;
      RL_ASSERT(value == last + 1);
      last = value;
    }
    got = sum;
  }
  void thread(unsigned index) {
    if (index == 0) send_in_order();
    if (index == 1) receive_all();
    if (index == 2) sent[1] = send(other) ? other : 0U;
  }
  void after() {
    RL_ASSERT(channel.list(sync::channel_side::senders).empty());
    RL_ASSERT(channel.list(sync::channel_side::receivers).empty());
    RL_ASSERT(sent[0] + sent[1] == got);
  }
};

}  // namespace

int main() { return models::check<channel_model>(models::deep(3)) ? 0 : 1; }
