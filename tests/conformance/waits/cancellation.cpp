// Cancelling at every suspension point. A program that waits in every possible way, interrupted at
// its first, second, … wait, has exactly one outcome and leaves nothing behind.
#include <memory>
#include <optional>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class cancellation : public conformance {};

struct server {
  counted here;
  int plain(counted) { return 1; }
  task<int> slow(counted) {
    counted frame;
    co_await sleep_for(50us);
    co_return 1;
  }
  task<int> in_two(counted) {
    counted frame;
    co_await yield();
    co_await sleep_for(20us);
    co_return 1;
  }
};
struct sink {
  counted here;
  int seen = 0;
  void put(counted) { ++seen; }
};
struct cargo {
  counted here;
  int weight = 1;
  task<> settle() { co_await sleep_for(30us); }
};

// How the program is interrupted.
enum class by { nothing, stop, stop_now, stop_from_outside, token, timeout, runtime_end };
constexpr by all_kinds[] = {by::stop,  by::stop_now, by::stop_from_outside,
                            by::token, by::timeout,  by::runtime_end};

struct subject;
struct poker {
  void stop(ref<subject> whom) { whom.stop_now(); }
  void request(unchecked<std::stop_source*> source) { source.value->request_stop(); }
};

struct scene {
  scene(runtime& runs, by interrupted, int wait) : rt(runs), kind(interrupted), at(wait) {}
  runtime& rt;
  by kind;
  int at;         // which wait is interrupted, counted from 0
  int waits = 0;  // how many waits have begun
  ref<server> servers = rt.spawn<server>();
  ref<sink> narrow = rt.spawn<sink>({.mailbox = {.messages = 1}});
  ref<poker> other = rt.spawn<poker>();
  ref<cargo> load = rt.activate(std::make_unique<cargo>());
  promise<int> promised{};
  event opened{};
  latch both{2};
  std::stop_source source{};
};

struct subject {
  counted here;
  scene* in = nullptr;

  // Counts a wait that begins. Returns true when it is the one to interrupt.
  bool is_now() {
    if (in->waits++ != in->at) return false;
    if (in->kind == by::stop) self(this).stop();
    if (in->kind == by::stop_now) self(this).stop_now();
    if (in->kind == by::stop_from_outside) in->other.tell<&poker::stop>(self(this));
    if (in->kind == by::token) in->other.tell<&poker::request>(unchecked{&in->source});
    if (in->kind == by::runtime_end) in->rt.stop(stop_mode::discard);
    return true;
  }

  template <class T>
  task<T> get(future<T> later) {
    counted frame;
    const bool now = is_now();
    if (now && in->kind == by::timeout) co_return co_await std::move(later).timeout(1us);
    if (in->kind == by::token) co_return co_await std::move(later).stop(in->source.get_token());
    co_return co_await std::move(later);
  }
  task<int> nap() {
    counted frame;
    is_now();
    co_await sleep_for(40us);
    co_return 1;
  }
  task<int> pass() {
    counted frame;
    is_now();
    co_await yield();
    co_return 1;
  }
  task<int> send() {
    counted frame;
    for (int i = 0; i < 3; ++i) {
      is_now();
      co_await in->narrow.send<&sink::put>(counted());
    }
    co_return 1;
  }
  task<int> signal() {
    counted frame;
    // Brings, a little later, what the others wait for.
    auto later = [](scene* of) -> task<> {
      counted here;
      co_await yield();
      of->promised.set_value(1);
      of->opened.set();
      of->both.count_down();
      co_await yield();
      of->both.count_down();
    };
    future<int> coming = in->promised.get_future();
    future<> signalled = in->rt.spawn(later(in));
    const int value = co_await get(std::move(coming));
    co_await get(in->opened.wait());
    co_await get(in->both.wait());
    co_await get(std::move(signalled));
    co_return value;
  }
  task<int> side() {
    counted frame;
    auto call = [frame] { return 1; };
    int sum = co_await get(blocking(std::move(call)));
    auto on_main = [frame] { return 1; };
    sum += co_await get(in->rt.main().call(std::move(on_main)));
    co_return sum;
  }
  task<int> together() {
    counted frame;
    auto one = get(in->servers.ask<&server::slow>(counted()));
    auto two = nap();
    const auto [a, b] = co_await when_all(std::move(one), std::move(two));
    auto three = nap();
    auto four = get(in->servers.ask<&server::in_two>(counted()));
    const auto first = co_await when_any(std::move(three), std::move(four));
    co_return a + b + (first.index() == 0 ? std::get<0>(first) : std::get<1>(first));
  }
  task<int> back() {
    counted frame;
    in->load.tell<&cargo::settle>();
    const std::unique_ptr<cargo> got = co_await get(in->load.consume());
    co_return got->weight;
  }

  task<int> walk(unchecked<scene*> given) {
    counted frame;
    in = given.value;
    int sum = co_await get(in->servers.ask<&server::plain>(counted()));
    sum += co_await get(in->servers.ask<&server::slow>(counted()));
    sum += co_await nap();
    sum += co_await pass();
    sum += co_await send();
    sum += co_await signal();
    sum += co_await side();
    sum += co_await together();
    sum += co_await back();
    co_return sum;
  }
};
constexpr int whole = 12;

// What the asker gets.
enum class outcome { value, stopped, cancelled, late, broken, none };

outcome outcome_of(future<int>& result) {
  if (!result.ready()) return outcome::none;
  try {
    EXPECT_EQ(result.get(), whole);
    return outcome::value;
  } catch (const actor_stopped&) {
    return outcome::stopped;
  } catch (const troupe::cancelled&) {
    return outcome::cancelled;
  } catch (const timed_out&) {
    return outcome::late;
  } catch (const broken_promise&) {
    return outcome::broken;
  }
}

// `ready`: the events of the last three waits may have come already: an answer beside a sleep that
// is given up, and what consume() returns. Then the call ends with its value.
bool may_be(by kind, outcome how, bool ready) {
  switch (kind) {
    case by::nothing:
      return how == outcome::value;
    case by::stop:
    case by::stop_now:
      return how == outcome::stopped || (ready && how == outcome::value);
    // The stop may come when the program has done everything but answer.
    case by::stop_from_outside:
      return how == outcome::stopped || how == outcome::value;
    // The runtime's end drops a blocking call that has not begun.
    case by::runtime_end:
      return how == outcome::stopped || how == outcome::cancelled || how == outcome::broken ||
             how == outcome::value;
    case by::token:
      return how == outcome::cancelled || how == outcome::value;
    case by::timeout:
      return how == outcome::late || how == outcome::value;
  }
  return false;
}

// Returns the number of waits.
int play(const runtime_options& options, by kind, int at) {
  const bool threaded = options.policy != policy::simulated;
  int waits = 0;
  future<int> result;
  outcome how = outcome::none;
  std::optional<scene> in;  // the runtime's end still uses the scene
  {
    runtime rt(options);
    in.emplace(rt, kind, at);
    auto one = rt.spawn<subject>();
    result = one.ask<&subject::walk>(unchecked{&*in});
    one = {};
    rt.run();
    if (kind != by::runtime_end) how = outcome_of(result);
  }
  waits = in->waits;
  if (kind == by::runtime_end) how = outcome_of(result);
  in.reset();
  EXPECT_TRUE(may_be(kind, how, threaded && at + 3 >= waits))
      << static_cast<int>(how) << " by " << static_cast<int>(kind) << " at " << at;
  EXPECT_EQ(live.load(), 0) << static_cast<int>(kind) << " at " << at;
  return waits;
}

TEST_P(cancellation, at_every_wait_has_one_outcome_and_leaves_nothing) {
  runtime_options chosen = options();
  const int seeds = threaded() ? 1 : fewer(10, 5);
  for (int i = 0; i < seeds; ++i, chosen.seed += 1000) {
    const int waits = play(chosen, by::nothing, -1);
    EXPECT_GE(waits, 17);
    for (const by kind : all_kinds) {
      for (int at = 0; at < waits && !HasFailure(); at += threaded() ? fewer(1, 3) : 1)
        play(chosen, kind, at);
    }
  }
}

TROUPE_TEST_EACH(cancellation, all_settings);

}  // namespace
}  // namespace troupe::test
