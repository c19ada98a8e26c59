// A report of waits names, for each kind of wait, the line of the user's program, and no line of
// the library.
#include <algorithm>
#include <functional>
#include <sstream>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class wait_lines : public conformance {};

struct keeper {
  event never;
  explicit keeper(event e) : never(std::move(e)) {}
  task<int> keep() {
    co_await never.wait();
    co_return 1;
  }
  void note(int) {}
};

// Returns the lines of a report that name suspended turns.
std::vector<std::string> waits_in(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find(" waits at ") != std::string::npos) all.push_back(line);
  }
  return all;
}

void expect_own_places(const std::string& text, std::size_t waits) {
  const std::vector<std::string> lines = waits_in(text);
  EXPECT_EQ(lines.size(), waits) << text;
  for (const std::string& line : lines)
    EXPECT_NE(line.find(" waits at wait_lines.cpp:"), std::string::npos) << line;
}

// None of these events comes, so the program is out of work.
TEST_P(wait_lines, of_a_stall_are_the_users) {
  runtime rt(options());
  const event never;
  const auto busy = rt.spawn<keeper>(never);
  const auto full =
      rt.spawn<keeper>({.mailbox = {.messages = 1, .when_full = when_full::suspend}}, never);
  promise<int> unset;
  future<int> later = unset.get_future();
  promise<> unset_too;
  future<> later_too = unset_too.get_future();
  full.tell<&keeper::keep>();
  const auto wanted = rt.spawn<keeper>(never);
  wanted.tell<&keeper::keep>();
  rt.spawn([busy]() -> task<> { static_cast<void>(co_await busy.ask<&keeper::keep>()); });
  rt.spawn([full]() -> task<> {
    for (int i = 0; i < 3; ++i) co_await full.send<&keeper::note>(i);
  });
  rt.spawn([never]() -> task<> { co_await never.wait(); });
  rt.spawn([later = std::move(later)]() mutable -> task<> { co_await std::move(later); });
  rt.spawn([never]() -> task<> { co_await when_all(never.wait(), never.wait()); });
  rt.spawn(
      [never, busy]() -> task<> { co_await when_any(never.wait(), busy.ask<&keeper::keep>()); });
  rt.spawn([never]() -> task<> {
    std::vector<future<>> all;
    for (int i = 0; i < 3; ++i) all.push_back(never.wait());
    co_await when_all(std::move(all));
  });
  rt.spawn([later = std::move(later_too)]() mutable -> task<> {
    task<> one = as_task(std::move(later));
    co_await std::move(one);
  });
  rt.spawn([&rt, never]() -> task<> {
    future<> spawned = rt.spawn([never]() -> task<> { co_await never.wait(); });
    co_await std::move(spawned);
  });
  rt.spawn([wanted]() -> task<> { static_cast<void>(co_await wanted.consume()); });
  rt.spawn([busy]() -> task<> { static_cast<void>(co_await busy.watch()); });
  rt.spawn([never]() -> task<> {
    latch closed(1);
    co_await closed.wait();
  });
  const auto waits = [](event e) -> task<> { co_await e.wait(); };
  submit(rt, waits, never);
  rt.spawn([never, waits]() -> task<> {
    submit(waits, never);
    co_return;
  });
  try {
    rt.run();
    ADD_FAILURE() << "it is not out of work";
  } catch (const stalled& why) {
    expect_own_places(why.what(), 18);
  }
}

// These events come by themselves later; meanwhile a dump reports the waits.
TEST_P(wait_lines, of_a_dump_are_the_users) {
  runtime rt(options());
  const event never;
  const auto busy = rt.spawn<keeper>(never);
  rt.spawn([]() -> task<> { co_await sleep_for(1h); });
  rt.spawn([never]() -> task<> { co_await never.wait().timeout(1h); });
  rt.spawn([busy]() -> task<> {
    try {
      static_cast<void>(co_await busy.ask<&keeper::keep>().timeout(1h));
    } catch (const actor_stopped&) {
      // The discard came before the ask was handled.
    }
  });
  rt.spawn([never]() -> task<> {
    auto slow = [](event e) -> task<> { co_await e.wait(); };
    task<> one = slow(never);
    co_await std::move(one).timeout(1h);
  });
  rt.spawn([never]() -> task<> { co_await when_any(sleep_for(1h), never.wait()); });
  submit(rt, []() -> task<> { co_await sleep_for(1h); });
  std::string text;
  // Tasks that have not begun do not wait for anything yet: the dump is made again until one has.
  std::function<void()> look = [&] {
    text = rt.dump();
    if (waits_in(text).empty()) {
      rt.after(1ms, [&] { look(); });
    } else {
      rt.stop(stop_mode::discard);
    }
  };
  rt.after(1ms, [&] { look(); });
  rt.run();
  const std::vector<std::string> lines = waits_in(text);
  EXPECT_GE(lines.size(), 1u) << text;
  for (const std::string& line : lines)
    EXPECT_NE(line.find(" waits at wait_lines.cpp:"), std::string::npos) << line;
}

TROUPE_TEST_EACH(wait_lines, all_settings);

}  // namespace
}  // namespace troupe::test
