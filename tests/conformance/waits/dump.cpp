// dump(): what a running program does and waits for, and the ids that name its actors.
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <sstream>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class dump : public conformance {};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct oven {
  event hot;
  task<int> bake(int loaves) {
    co_await hot.wait();
    co_return loaves;
  }
};
struct baker {
  ref<oven> from;
  int got = 0;
  explicit baker(ref<oven> oven) : from(std::move(oven)) {}
  task<> work() { got += co_await from.ask<&oven::bake>(1); }
  int count() { return got; }
};
struct hall {
  static constexpr bool reentrant = true;
  event open;
  int inside = 0;
  task<> enter() {
    co_await open.wait();
    ++inside;
  }
  int count() { return inside; }
};

TEST_P(dump, names_who_waits_for_what_wherever_it_lives) {
  for (const thread_kind& where : thread_kinds("d")) {
    runtime rt(options());
    event hot;
    auto stove = spawn_on<oven>(rt, where, hot);
    auto one = spawn_on<baker>(rt, where, stove);
    auto admission_tickets = spawn_on<hall>(rt, where, hot);
    one.tell<&baker::work>();
    for (int i = 0; i < 3; ++i) admission_tickets.tell<&hall::enter>();
    EXPECT_THROW(rt.run(), stalled);
    std::ostringstream out;
    rt.dump(out);
    const std::string text = out.str();
    EXPECT_TRUE(has(text, "suspended: 5\n")) << text;
    EXPECT_TRUE(has(text, "baker #" + std::to_string(one.id()) + " in &")) << text;
    EXPECT_TRUE(has(text, "oven #" + std::to_string(stove.id()) + " in &")) << text;
    EXPECT_TRUE(has(text, "hall #" + std::to_string(admission_tickets.id()) + " in &")) << text;
    EXPECT_TRUE(has(text, "bake (#" + std::to_string(stove.id()) + ")"))
        << "whom it asks: " << text;
    EXPECT_TRUE(has(text, "dump.cpp:")) << text;
    EXPECT_TRUE(has(text, "running: none")) << text;
    hot.set();
    auto loaves = one.ask<&baker::count>();
    auto inside = admission_tickets.ask<&hall::count>();
    rt.run();
    EXPECT_EQ(loaves.get(), 1);
    EXPECT_EQ(inside.get(), 3);
    EXPECT_TRUE(has(rt.dump(), "suspended: 0\n")) << rt.dump();
  }
}

task<> hold_a_door(std::shared_ptr<mutex> door, event ends) {
  const auto held = co_await door->lock();
  co_await ends.wait();
}
task<> knock_at(std::shared_ptr<mutex> door) { const auto held = co_await door->lock(); }

TEST_P(dump, tells_locks_apart_that_were_taken_in_the_same_line) {
  for (const int doors : {1, 2}) {
    runtime rt(options());
    event ends;
    for (int i = 0; i < doors; ++i) {
      const auto door = std::make_shared<mutex>();
      rt.spawn(hold_a_door(door, ends));
      EXPECT_THROW(rt.run(), stalled);
      for (int j = 0; j < 2; ++j) rt.spawn(knock_at(door));
    }
    EXPECT_THROW(rt.run(), stalled);
    const std::string text = rt.dump();
    for (const int lock : {1, 2, 3}) {
      const std::string mark = " (lock " + std::to_string(lock) + ")\n";
      std::size_t lines = 0;
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1))
        ++lines;
      EXPECT_EQ(lines, doors == 1 || lock > doors ? 0u : 2u) << text;
    }
    EXPECT_TRUE(has(text, "waits at dump.cpp:")) << text;
    EXPECT_TRUE(has(text, " for a lock held by ")) << text;
    EXPECT_TRUE(has(text, " since dump.cpp:")) << text;
    ends.set();
    rt.run();
  }
}

// The dump is made in a handler, on a thread that runs the waiting actors, too.
TEST_P(dump, in_a_handler_names_what_waits_on_its_own_worker) {
  runtime rt(options());
  event hot;
  auto stove = rt.spawn<oven>(hot);
  auto one = rt.spawn<baker>(stove);
  struct asker {
    std::string seen;
    task<> start(ref<baker> waiting, unchecked<runtime*> rt, event then) {
      waiting.tell<&baker::work>();
      co_await sleep_for(1ms);  // not exact, but long enough for the others to wait
      seen = rt.value->dump();
      then.set();
    }
    std::string text() { return seen; }
  };
  auto who = rt.spawn<asker>();
  who.tell<&asker::start>(one, unchecked{&rt}, hot);
  auto text = who.ask<&asker::text>();
  rt.run();
  const std::string seen = text.get();
  EXPECT_TRUE(has(seen, "start (#" + std::to_string(who.id()) + ")")) << "it runs: " << seen;
  if (!threaded()) {
    EXPECT_TRUE(has(seen, "for the answer of &")) << seen;
  }
}

TEST_P(dump, works_while_all_workers_are_stuck) {
  if (!threaded()) GTEST_SKIP() << "needs threads: one thread, inside run()";
  runtime rt(options());
  std::atomic<int> in{0}, out{0};
  event hot;
  auto stove = rt.spawn<oven>(hot);
  auto one = rt.spawn<baker>(stove);
  one.tell<&baker::work>();
  struct stuck {
    // Holds its worker until it is told to return.
    static void hold(std::atomic<int>& in, std::atomic<int>& out) {
      in.fetch_add(1);
      in.notify_all();
      wait_for(out, 1);
    }
  };
  // First the two actors wait; then each worker runs a procedure that holds it.
  std::thread wait_until_parked([&, open = rt.hold()] {
    while (!has(rt.dump(), "suspended: 2\n")) std::this_thread::yield();
    for (unsigned i = 0; i < workers(); ++i) rt.post([&] { stuck::hold(in, out); });
    wait_for(in, static_cast<int>(workers()));
    const std::string text = rt.dump();
    EXPECT_TRUE(has(text, "suspended: 2\n")) << text;
    EXPECT_TRUE(has(text, "running: post")) << text;
    set_and_wake(out, 1);
    hot.set();
  });
  rt.run();
  wait_until_parked.join();
}

TEST_P(dump, ids_are_the_same_in_refs_failures_dead_letters_and_stalls) {
  runtime_options chosen = options();
  std::mutex mutex;
  std::vector<std::uint64_t> failed, dead;
  chosen.on_error = [&](const failure& one) {
    std::lock_guard lock(mutex);
    failed.push_back(one.actor_id);
  };
  chosen.on_dead_letter = [&](const dead_letter& one) {
    std::lock_guard lock(mutex);
    dead.push_back(one.actor_id);
  };
  runtime rt(chosen);
  struct fragile {
    char large[20'000] = {};  // makes the frame need a block of its own
    void fail() { throw std::runtime_error("fragile"); }
    task<> wait(event never) { co_await never.wait(); }
  };
  std::vector<ref<fragile>> all;
  for (int i = 0; i < 3; ++i) all.push_back(rt.spawn<fragile>());
  EXPECT_NE(all[0].id(), all[1].id());
  EXPECT_EQ(all[2].id(), ref<fragile>(all[2]).id());
  EXPECT_EQ(ref<fragile>().id(), 0u);
  all[1].tell<&fragile::fail>();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(rt.thrown().actor_id, all[1].id());
  all[2].stop();
  all[2].tell<&fragile::fail>();
  event never;
  all[0].tell<&fragile::wait>(never);
  try {
    rt.run();
    FAIL();
  } catch (const stalled& why) {
    EXPECT_TRUE(has(why.what(), "fragile #" + std::to_string(all[0].id()) + " in ")) << why.what();
  }
  EXPECT_EQ(failed, std::vector{all[1].id()});
  EXPECT_EQ(dead, std::vector{all[2].id()});
}

// A dump takes an actor over for an instant. Meanwhile no message may get lost, and the program
// must not end early.
TEST_P(dump, storms_of_dumps_disturb_nobody) {
  const int rounds = fewer(60, 6), actors = 20;
  runtime rt(options());
  std::atomic<bool> done{false};
  std::vector<std::thread> dumpers;
  for (int i = 0; i < 2; ++i) {
    dumpers.emplace_back([&] {
      while (!done.load()) EXPECT_TRUE(has(rt.dump(), "suspended: "));
    });
  }
  long baked = 0, entered = 0;
  for (int round = 0; round < rounds; ++round) {
    event hot, open;
    auto stove = rt.spawn<hall>(open);
    std::vector<future<int>> counts;
    std::vector<ref<baker>> bakers;
    for (int i = 0; i < actors; ++i) {
      bakers.push_back(rt.spawn<baker>(rt.spawn<oven>(hot)));
      bakers.back().tell<&baker::work>();
      stove.tell<&hall::enter>();
    }
    auto opener = [](event first, event second) -> task<> {
      co_await sleep_for(100us);
      first.set();
      for (int i = 0; i < 3; ++i) co_await yield();
      second.set();
    };
    static_cast<void>(rt.spawn(opener(hot, open)));
    for (auto& one : bakers) counts.push_back(one.ask<&baker::count>());
    bakers.clear();
    rt.run();
    auto inside = stove.ask<&hall::count>();
    rt.run();
    for (auto& one : counts) baked += one.get();
    entered += inside.get();
  }
  done.store(true);
  for (auto& one : dumpers) one.join();
  EXPECT_EQ(baked, static_cast<long>(rounds) * actors);
  EXPECT_EQ(entered, static_cast<long>(rounds) * actors);
}

// Puts a pipe in the place of standard error, and reads from it until the text has come.
class captured_stderr {
 public:
  captured_stderr() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe(ends_), 0);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  ~captured_stderr() {
    ::dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) ::close(fd);
  }
  std::string read_until(const std::string& part, int times = 1) {
    std::string text;
    for (std::size_t at = 0; times > 0;) {
      char bytes[4096];
      const ssize_t got = ::read(ends_[0], bytes, sizeof bytes);
      if (got <= 0) break;
      text.append(bytes, static_cast<std::size_t>(got));
      while (times > 0 && (at = text.find(part, at)) != std::string::npos)
        --times, at += part.size();
      if (at == std::string::npos) at = text.size() > part.size() ? text.size() - part.size() : 0;
    }
    return text;
  }
  bool anything() {
    pollfd one{ends_[0], POLLIN, 0};
    return ::poll(&one, 1, 0) > 0;
  }

 private:
  int before_, ends_[2];
};

volatile std::sig_atomic_t quits_of_ours = 0;

TEST_P(dump, sigquit_asks_all_runtimes_that_listen_and_none_other) {
  struct sigaction ours {
  }, before{}, now{};
  ours.sa_handler = [](int) { quits_of_ours = quits_of_ours + 1; };
  ASSERT_EQ(::sigaction(SIGQUIT, &ours, &before), 0);
  quits_of_ours = 0;
  runtime_options chosen = options();
  runtime deaf(chosen);
  chosen.dump_on_sigquit = true;
  for (int round = 0; round < 3; ++round) {
    captured_stderr said;
    runtime one(chosen);
    auto other = std::make_unique<runtime>(chosen);
    event hot;
    auto stove = one.spawn<oven>(hot);
    stove.tell<&oven::bake>(1);
    EXPECT_THROW(one.run(), stalled);
    ::kill(::getpid(), SIGQUIT);
    const std::string text = said.read_until("suspended: ", 2) + "\n";
    EXPECT_TRUE(has(text, "oven #" + std::to_string(stove.id()))) << text;
    other.reset();
    ::kill(::getpid(), SIGQUIT);
    EXPECT_TRUE(has(said.read_until("bake waits at"), "oven #"));
    EXPECT_EQ(quits_of_ours, 0);
    hot.set();
    one.run();
  }
  ::sigaction(SIGQUIT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, ours.sa_handler) << "it means what it did before";
  ::raise(SIGQUIT);
  EXPECT_EQ(quits_of_ours, 1);
  {
    runtime one(chosen);
    ::sigaction(SIGQUIT, &ours, nullptr);  // other code sets a handler meanwhile, and keeps it
  }
  ::raise(SIGQUIT);
  EXPECT_EQ(quits_of_ours, 2);
  ::sigaction(SIGQUIT, &before, nullptr);
}

TROUPE_TEST_EACH(dump, all_settings);

}  // namespace
}  // namespace troupe::test
