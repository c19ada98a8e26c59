// A storm of asks while the actors that are asked are stopped: every asker gets exactly one
// outcome, and nothing is left behind.
#include <array>
#include <mutex>
#include <random>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class asks : public conformance {};

struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct server;
// Which servers to ask now. Servers that were stopped are replaced.
class directory {
 public:
  explicit directory(runtime& runs) : rt_(runs) {
    for (auto& one : all_) one = rt_.spawn<server>();
  }
  ref<server> any(unsigned n) {
    std::lock_guard lock(mutex_);
    return all_[n % all_.size()];
  }
  ref<server> replace(unsigned n);

 private:
  runtime& rt_;
  std::mutex mutex_;
  std::array<ref<server>, 50> all_;
};

struct server {
  counted here;
  unsigned asked = 0;
  int plain(counted) { return 1; }
  int fails(counted) {
    if (++asked % 3 == 0) throw refused("no");
    return 1;
  }
  task<int> slow(counted) {
    counted frame;
    co_await yield();
    co_return 1;
  }
  task<int> naps(counted) {
    counted frame;
    co_await sleep_for(20us);
    co_return 1;
  }
  task<int> passes_on(ref<server> to, counted argument) {
    counted frame;
    co_return co_await to.ask<&server::slow>(argument);
  }
};

ref<server> directory::replace(unsigned n) {
  ref<server> fresh = rt_.spawn<server>();
  std::lock_guard lock(mutex_);
  std::swap(all_[n % all_.size()], fresh);
  return fresh;
}

struct ledger {
  std::atomic<int> value{0}, error{0}, stopped{0}, late{0}, cancelled{0}, deadlocked{0};
  int sum() const { return value + error + stopped + late + cancelled + deadlocked; }
};

// A server passes an ask on to itself or to one of the servers behind, which ask no other: two
// servers that ask each other would wait without end.
task<> ask_on(unchecked<directory*> whom, unchecked<directory*> behind, unchecked<ledger*> to,
              unsigned seed, int count) {
  counted frame;
  std::minstd_rand random(seed);
  std::stop_source source;
  for (int i = 0; i < count; ++i) {
    const ref<server> one = whom.value->any(static_cast<unsigned>(random()));
    const auto kind = random() % 8;
    future<int> answer;
    if (kind < 2) answer = one.ask<&server::plain>(counted());
    if (kind == 2) answer = one.ask<&server::fails>(counted());
    if (kind == 3) answer = one.ask<&server::naps>(counted());
    if (kind == 4) {
      const auto other = static_cast<unsigned>(random());
      answer =
          one.ask<&server::passes_on>(other % 8 == 0 ? one : behind.value->any(other), counted());
    }
    if (kind > 4) answer = one.ask<&server::slow>(counted());
    if (random() % 16 == 0) {
      source = std::stop_source();
      one.tell([source](server&) mutable { source.request_stop(); });
    }
    std::atomic<int>* how = nullptr;
    try {
      if (kind == 7) {
        to.value->value += co_await std::move(answer).timeout(30us);
      } else if (kind == 6) {
        to.value->value += co_await std::move(answer).stop(source.get_token());
      } else {
        to.value->value += co_await std::move(answer);
      }
    } catch (const refused&) {
      how = &to.value->error;
    } catch (const actor_stopped&) {
      how = &to.value->stopped;
    } catch (const timed_out&) {
      how = &to.value->late;
    } catch (const troupe::cancelled&) {
      how = &to.value->cancelled;
    } catch (const deadlock&) {
      how = &to.value->deadlocked;
    }
    if (how != nullptr) ++*how;
  }
}

task<> stop_some(unchecked<directory*> whom, unsigned seed, int count) {
  counted frame;
  std::minstd_rand random(seed);
  for (int i = 0; i < count; ++i) {
    const ref<server> old = whom.value->replace(static_cast<unsigned>(random()));
    const auto kind = random() % 3;
    if (kind == 0) old.stop();
    if (kind == 1) old.stop_now();
    if (i % 4 == 0) {
      co_await sleep_for(10us);
    } else {
      co_await yield();
    }
  }
}

TEST_P(asks, a_storm_with_random_stops_gives_each_one_outcome) {
  const int askers = 100, each = fewer(1000, 2);
  ledger outcomes;
  {
    runtime rt(options());
    directory all(rt), behind(rt);
    for (int i = 0; i < askers; ++i) {
      static_cast<void>(rt.spawn(ask_on(unchecked{&all}, unchecked{&behind}, unchecked{&outcomes},
                                        static_cast<unsigned>(i) + 1, each)));
    }
    for (unsigned i = 0; i < 4; ++i) {
      static_cast<void>(rt.spawn(
          stop_some(unchecked{i % 2 == 0 ? &all : &behind}, 1000 + i, askers * each / 100)));
    }
    rt.run();
    EXPECT_EQ(outcomes.sum(), askers * each);
    EXPECT_EQ(live.load(), 100) << "those that are asked are there still, and nothing else";
    EXPECT_GT(outcomes.value.load(), 0);
    EXPECT_GT(outcomes.stopped.load(), 0);
    EXPECT_GT(outcomes.error.load(), 0);
    EXPECT_GT(outcomes.deadlocked.load(), 0);
  }
  EXPECT_EQ(live.load(), 0);
}

TROUPE_TEST_EACH(asks, all_settings);

}  // namespace
}  // namespace troupe::test
