// Failures that no code handles: they are kept within limits, reported on standard error, and
// released in the right order.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <latch>
#include <sstream>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class failures : public conformance {};

struct numbered : std::runtime_error {
  int number;
  explicit numbered(int n) : std::runtime_error("number " + std::to_string(n)), number(n) {}
};

struct fragile {
  void fail(int number) { throw numbered(number); }
  task<> fail_later(int number) {
    co_await yield();
    throw numbered(number);
  }
};

int number_in(const failure& one) {
  try {
    std::rethrow_exception(one.what);
  } catch (const numbered& e) {
    return e.number;
  }
}

std::vector<int> numbers_in(const std::vector<failure>& all) {
  std::vector<int> numbers;
  for (const failure& one : all) numbers.push_back(number_in(one));
  return numbers;
}

int thrown_by(runtime& rt) {
  try {
    rt.run();
  } catch (const numbered& e) {
    return e.number;
  }
  return 0;
}

// Captures standard error for as long as the object exists.
class captured {
 public:
  captured() { testing::internal::CaptureStderr(); }
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
  ~captured() {
    if (!taken_) static_cast<void>(take());
  }
  std::string take() {
    taken_ = true;
    return testing::internal::GetCapturedStderr();
  }

 private:
  bool taken_ = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("troupe: failure: ")) all.push_back(line);
  }
  return all;
}

TEST_P(failures, are_kept_the_first_and_the_newest) {
  runtime_options chosen = options();
  chosen.failures_kept = 10;
  chosen.failure_lines = 0;
  for (const thread_kind& where : thread_kinds("fragile")) {
    runtime rt(chosen);
    auto one = spawn_on<fragile>(rt, where);
    for (int i = 1; i <= 100; ++i)
      i % 2 == 0 ? one.tell<&fragile::fail>(i) : one.tell<&fragile::fail_later>(i);
    EXPECT_EQ(thrown_by(rt), 1);
    EXPECT_EQ(numbers_in(rt.errors()), (std::vector{2, 3, 4, 5, 96, 97, 98, 99, 100}));
    const runtime_metrics now = rt.metrics();
    EXPECT_EQ(now.failures, 100u);
    EXPECT_EQ(now.failures_dropped, 90u);
    EXPECT_EQ(now.failures_kept, 9u);
    EXPECT_GT(now.failure_bytes, 0u);
    for (const int next : {2, 3, 4, 5, 96}) EXPECT_EQ(thrown_by(rt), next);
    for (int i = 101; i <= 110; ++i) one.tell<&fragile::fail>(i);
    EXPECT_EQ(thrown_by(rt), 97) << "there is room again";
    EXPECT_EQ(numbers_in(rt.errors()), (std::vector{102, 103, 104, 105, 106, 107, 108, 109, 110}));
    rt.clear_errors();
    EXPECT_EQ(rt.metrics().failures_kept, 0u);
    EXPECT_EQ(rt.metrics().failure_bytes, 0u);
  }
}

TEST_P(failures, a_limit_of_one_keeps_the_first) {
  runtime_options chosen = options();
  chosen.failures_kept = 1;
  chosen.failure_lines = 0;
  runtime rt(chosen);
  auto one = rt.spawn<fragile>();
  for (int i = 1; i <= 5; ++i) one.tell<&fragile::fail>(i);
  EXPECT_EQ(thrown_by(rt), 1);
  EXPECT_EQ(thrown_by(rt), 0);
  EXPECT_EQ(rt.metrics().failures_dropped, 4u);
}

struct token {
  bool memory_gone = false;
  int late = 0, alive = 0;
};
// Lies in a context, and notes when that memory goes.
struct lies_there {
  std::shared_ptr<token> of;
  explicit lies_there(std::shared_ptr<token> t) : of(std::move(t)) {}
  ~lies_there() { of->memory_gone = true; }
};
// An exception that refers to memory of a context for as long as it exists.
struct refers_to_it : std::runtime_error {
  std::shared_ptr<token> of;
  explicit refers_to_it(std::shared_ptr<token> t)
      : std::runtime_error("it lies in a context"), of(std::move(t)) {
    ++of->alive;
  }
  refers_to_it(const refers_to_it& other) : std::runtime_error(other), of(other.of) { ++of->alive; }
  refers_to_it& operator=(const refers_to_it&) = delete;
  ~refers_to_it() override {
    if (of->memory_gone) ++of->late;
    --of->alive;
  }
};

void fail_in_context(runtime& rt, const std::shared_ptr<token>& of) {
  submit(rt, [of](context& here) {
    static_cast<void>(here.make<lies_there>(of));
    static_cast<void>(here.allocate(20'000));
    throw refers_to_it(of);
  });
}

struct in_context {
  std::shared_ptr<token> of = std::make_shared<token>();
  void expect_right_order(const char* what) const {
    EXPECT_TRUE(of->memory_gone) << what;
    EXPECT_EQ(of->late, 0) << what;
    EXPECT_EQ(of->alive, 0) << what;
  }
};

TEST_P(failures, an_exception_goes_before_the_context_that_it_lies_in) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  const in_context untouched, thrown, cleared, taken;
  {
    runtime rt(chosen);
    fail_in_context(rt, thrown.of);
    EXPECT_THROW(rt.run(), refers_to_it);
    fail_in_context(rt, cleared.of);
    EXPECT_THROW(rt.run(), refers_to_it);
    thrown.expect_right_order("another one was thrown");
    fail_in_context(rt, taken.of);
    const hold open = rt.hold();
    std::thread other([&] {
      for (bool got = false; !got;) {
        std::vector<failure> all = rt.take_errors();
        got = !all.empty();
        if (got) {
          EXPECT_FALSE(taken.of->memory_gone);
        }
        for (failure& one : all) one = failure();
      }
      rt.stop();
    });
    rt.run();
    other.join();
    taken.expect_right_order("it was taken");
    fail_in_context(rt, untouched.of);
    rt.stop();
    EXPECT_THROW(rt.run(), refers_to_it);
  }
  cleared.expect_right_order("the runtime ended");
  untouched.expect_right_order("the runtime ended, and it was thrown last");
}

TEST_P(failures, the_runtimes_end_releases_what_nobody_asked_for) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  const in_context kept;
  std::vector<failure> outlives;
  const in_context copied;
  {
    runtime rt(chosen);
    rt.post([] { throw numbered(1); });
    EXPECT_EQ(thrown_by(rt), 1);
    rt.post([] { throw numbered(2); });
    fail_in_context(rt, kept.of);
    fail_in_context(rt, copied.of);
    EXPECT_ANY_THROW(rt.run());
    outlives = rt.errors();
    EXPECT_EQ(outlives.size(), 2u);
  }
  EXPECT_FALSE(copied.of->memory_gone);
  outlives.clear();
  kept.expect_right_order("the runtime ended");
  copied.expect_right_order("the copy went");
}

TEST_P(failures, an_exception_that_unwinds_its_runtime_keeps_its_context) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  const in_context first;
  try {
    runtime rt(chosen);
    fail_in_context(rt, first.of);
    rt.run();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const refers_to_it& why) {
    EXPECT_FALSE(first.of->memory_gone);
    EXPECT_STREQ(why.what(), "it lies in a context");
  }
  EXPECT_EQ(first.of->late, 0);
}

TEST_P(failures, what_is_dropped_releases_its_context) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  chosen.failure_bytes = std::size_t{1} << 20;
  const int count = fewer(2'000);
  const auto before = count_contexts();
  const auto of = std::make_shared<token>();
  {
    chosen.workers = 1;  // only one thread may use the token
    runtime rt(chosen);
    std::vector<std::shared_ptr<token>> all;
    for (int i = 0; i < count; ++i)
      fail_in_context(rt, all.emplace_back(std::make_shared<token>()));
    EXPECT_THROW(rt.run(), refers_to_it);
    const runtime_metrics now = rt.metrics();
    EXPECT_LE(now.failure_bytes, std::size_t{1} << 20);
    EXPECT_EQ(now.failures, static_cast<std::uint64_t>(count));
    EXPECT_EQ(now.failures_dropped + now.failures_kept + 1, now.failures);
    EXPECT_LE(count_contexts().active - before.active, 60)
        << "20,000 bytes each, and one that was thrown";
    for (const auto& one : all) EXPECT_EQ(one->late, 0);
  }
  EXPECT_EQ(count_contexts().active, before.active);
}

// Runs until the program has no work left. Afterwards no failure is kept any more.
void run_and_forget(runtime& rt) {
  for (bool again = true; again;) {
    try {
      rt.run();
      again = false;
    } catch (const refers_to_it&) {
    }
  }
  rt.post([] { throw numbered(1); });
  EXPECT_EQ(thrown_by(rt), 1) << "it is the one that was thrown last";
}

// An actor with a context of its own, to which its failures refer.
struct heaped {
  void fail(std::shared_ptr<token> of) {
    static_cast<void>(this_context().make<lies_there>(of));
    static_cast<void>(this_context().allocate(20'000));
    throw refers_to_it(of);
  }
  task<> fail_later(std::shared_ptr<token> of) {
    co_await yield();
    fail(of);
  }
};
// A second call of this actor cannot be cancelled at once.
struct stubborn : heaped {
  static constexpr bool reentrant = true;
  task<> stay() {
    co_await yield();
    co_await yield();
  }
};

TEST_P(failures, keep_the_context_for_who_watches) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  for (const bool later : {false, true}) {
    for (const bool rolls_back : {false, true}) {
      for (const error_policy policy :
           {error_policy::stop, error_policy::restart, error_policy::escalate}) {
        const in_context held, dropped, survived, survived_too;
        ended how;
        {
          runtime rt(chosen);
          auto top = rt.spawn<heaped>(
              {.on_error = error_policy::stop, .context = context_options{.name = "top"}});
          const spawn_options own{.on_error = policy,
                                  .restart = {.times = 1, .per = 1h},
                                  .parent = top,
                                  .context = context_options{.name = "own"},
                                  .rolls_back = rolls_back};
          auto one = rt.spawn<heaped>(own);
          auto other = rt.spawn<heaped>(own);
          auto end = one.watch(), end_of_other = other.watch();
          const auto fail = [later](const ref<heaped>& which, const std::shared_ptr<token>& of) {
            later ? which.tell<&heaped::fail_later>(of) : which.tell<&heaped::fail>(of);
          };
          if (policy == error_policy::restart) {
            fail(one, survived.of);
            fail(other, survived_too.of);
          }
          fail(one, held.of);
          fail(other, dropped.of);
          run_and_forget(rt);
          how = end.get();
          if (policy != error_policy::escalate) {
            EXPECT_EQ(how.reason, ended::why::failed);
          }
        }
        // If one of two children escalates, the parent ends the other child, perhaps before that
        // one has failed.
        const bool both = policy != error_policy::escalate;
        if (both) dropped.expect_right_order("nobody looked at it");
        if (policy == error_policy::restart) survived.expect_right_order("it began anew");
        if (how.what != nullptr) {
          EXPECT_GT(held.of->alive, 0);
        }
        how = ended();
        if (both) held.expect_right_order("the watcher let go of it");
        EXPECT_EQ(held.of->late + dropped.of->late, 0);
        EXPECT_EQ(held.of->alive + dropped.of->alive, 0);
      }
    }
  }
}

TEST_P(failures, keep_the_context_until_all_calls_are_over) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  const in_context held, dropped;
  ended how;
  {
    runtime rt(chosen);
    const spawn_options own{.on_error = error_policy::stop,
                            .context = context_options{.name = "own"}};
    auto one = rt.spawn<stubborn>(own), other = rt.spawn<stubborn>(own);
    auto end = one.watch();
    one.tell<&stubborn::stay>();
    one.tell<&heaped::fail>(held.of);
    other.tell<&stubborn::stay>();
    other.tell<&heaped::fail>(dropped.of);
    run_and_forget(rt);
    how = end.get();
    EXPECT_EQ(how.reason, ended::why::failed);
  }
  dropped.expect_right_order("nobody looked at it");
  EXPECT_FALSE(held.of->memory_gone);
  EXPECT_EQ(held.of->late, 0);
  how = ended();
  held.expect_right_order("the watcher let go of it");
}

TEST_P(failures, keep_the_context_on_their_way_up) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  const in_context held;
  std::vector<ended> ends;
  {
    runtime rt(chosen);
    auto top = rt.spawn<heaped>(
        {.on_error = error_policy::stop, .context = context_options{.name = "top"}});
    auto middle = rt.spawn<heaped>({.on_error = error_policy::escalate, .parent = top});
    auto low = rt.spawn<heaped>({.on_error = error_policy::escalate,
                                 .parent = middle,
                                 .context = context_options{.name = "low"}});
    auto end = top.watch(), middle_end = middle.watch();
    low.tell<&heaped::fail>(held.of);
    run_and_forget(rt);
    ends.push_back(end.get());
    ends.push_back(middle_end.get());
  }
  for (const ended& one : ends) {
    ASSERT_EQ(one.reason, ended::why::failed);
    EXPECT_THROW(std::rethrow_exception(one.what), refers_to_it);
  }
  EXPECT_EQ(held.of->late, 0);
  ends.clear();
  held.expect_right_order("the parents' watchers let go of it");
}

TEST_P(failures, are_taken_while_the_program_is_held_open) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  runtime rt(chosen);
  auto one = rt.spawn<fragile>();
  for (int i = 1; i <= 30; ++i) one.tell<&fragile::fail>(i);
  std::vector<int> taken;
  std::thread owner([&, open = rt.hold()] {
    while (taken.size() < 30) {
      for (const failure& each : rt.take_errors()) taken.push_back(number_in(each));
    }
  });
  EXPECT_EQ(thrown_by(rt), 0) << "somebody had them";
  owner.join();
  for (int i = 0; i < 30; ++i) EXPECT_EQ(taken[static_cast<std::size_t>(i)], i + 1);
  EXPECT_TRUE(rt.errors().empty());
}

TEST_P(failures, can_stop_a_program_that_is_held_open) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  chosen.stop_on_failure = true;
  runtime rt(chosen);
  const hold open = rt.hold();
  rt.spawn<fragile>().tell<&fragile::fail>(3);
  EXPECT_EQ(thrown_by(rt), 3);
  rt.spawn<fragile>().tell<&fragile::fail_later>(4);
  EXPECT_EQ(thrown_by(rt), 4);
}

TEST_P(failures, that_are_escalated_end_run_though_the_program_is_held_open) {
  runtime_options chosen = options();
  chosen.failure_lines = 0;
  runtime rt(chosen);
  const hold open = rt.hold();
  rt.spawn<fragile>({.on_error = error_policy::escalate}).tell<&fragile::fail>(3);
  EXPECT_EQ(thrown_by(rt), 3);
}

TEST_P(failures, are_lines_on_standard_error) {
  captured out;
  {
    runtime rt(options());
    auto one = rt.spawn<fragile>();
    one.tell<&fragile::fail>(1);
    EXPECT_EQ(thrown_by(rt), 1);
    rt.spawn<fragile>(pinned("thread")).tell<&fragile::fail_later>(2);
    EXPECT_EQ(thrown_by(rt), 2);
    rt.post([] { throw std::logic_error("two\nlines"); });
    EXPECT_THROW(rt.run(), std::logic_error);
    rt.post([] { throw 42; });
    EXPECT_THROW(rt.run(), int);
    rt.spawn([]() -> task<int> {
      throw numbered(5);
      co_return 1;
    }());
    EXPECT_EQ(thrown_by(rt), 5);
    one.tell([](fragile& self) { troupe::self(&self).ask<&fragile::fail>(6).then([] {}); });
    EXPECT_EQ(thrown_by(rt), 6);
    submit(rt, [] { throw numbered(7); });
    EXPECT_EQ(thrown_by(rt), 7);
  }
  const std::string text = out.take();
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 7u) << text;
  for (const std::size_t at : {0u, 1u}) {
    EXPECT_NE(lines[at].find("fragile #"), std::string::npos) << lines[at];
    EXPECT_NE(
        lines[at].find(at == 0 ? "fragile::fail: number 1 (" : "fragile::fail_later: number 2 ("),
        std::string::npos)
        << lines[at];
    EXPECT_NE(lines[at].find("numbered)"), std::string::npos) << lines[at];
  }
  EXPECT_EQ(lines[2], "troupe: failure: a posted procedure: two lines (std::logic_error)");
  EXPECT_EQ(lines[3], "troupe: failure: a posted procedure: int");
  EXPECT_NE(lines[4].find("a spawned task #"), std::string::npos) << lines[4];
  EXPECT_NE(lines[5].find("a callback of a future: number 6"), std::string::npos) << lines[5];
  EXPECT_NE(lines[6].find("a submitted call: number 7"), std::string::npos) << lines[6];
}

TEST_P(failures, lines_are_limited_and_those_left_out_are_counted) {
  captured out;
  constexpr int count = 1'000;
  {
    runtime rt(options());
    auto one = rt.spawn<fragile>();
    for (int i = 1; i <= count; ++i) one.tell<&fragile::fail>(i);
    EXPECT_EQ(thrown_by(rt), 1);
    rt.clear_errors();
  }
  const std::string text = out.take();
  std::uint64_t whole = 0, left_out = 0;
  for (std::string line : lines_of(text)) {
    constexpr std::string_view begins = "troupe: failure: … and ";
    if (!line.starts_with(begins)) {
      ++whole;
      continue;
    }
    EXPECT_TRUE(line.ends_with(" more in the last second")) << line;
    std::erase(line, ',');
    left_out += std::stoull(line.substr(begins.size()));
  }
  EXPECT_EQ(whole + left_out, static_cast<std::uint64_t>(count)) << text;
  EXPECT_GE(whole, 10u);
}

TEST_P(failures, that_were_left_out_and_nobody_asked_for_are_lines_at_the_end) {
  captured out;
  {
    runtime_options chosen = options();
    chosen.failure_lines = 1;
    runtime rt(chosen);
    rt.post([] { throw numbered(1); });
    EXPECT_EQ(thrown_by(rt), 1);
    auto one = rt.spawn<fragile>();
    for (int i = 2; i <= 5; ++i) one.tell<&fragile::fail>(i);
    EXPECT_EQ(thrown_by(rt), 2);
  }
  const std::string text = out.take();
  for (int i = 3; i <= 5; ++i)
    EXPECT_NE(text.find("number " + std::to_string(i)), std::string::npos) << text;
}

TEST_P(failures, are_no_lines_where_somebody_listens_or_none_are_wanted) {
  captured out;
  for (const bool listens : {true, false}) {
    runtime_options chosen = options();
    std::atomic<int> heard{0};
    if (listens) chosen.on_error = [&](const failure&) { ++heard; };
    if (!listens) chosen.failure_lines = 0;
    runtime rt(chosen);
    rt.post([] { throw numbered(1); });
    EXPECT_EQ(thrown_by(rt), 1);
    EXPECT_EQ(heard.load(), listens ? 1 : 0);
  }
  EXPECT_EQ(lines_of(out.take()).size(), 0u);
}

// Makes standard error a pipe for a while: a full one, or one whose other end is closed.
class piped {
 public:
  explicit piped(bool closed) : before_(::dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_ = ends[0];
    ::dup2(ends[1], STDERR_FILENO);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const std::string filling(4'096, '.');
    while (::write(ends[1], filling.data(), filling.size()) > 0) {
    }
    ::fcntl(ends[1], F_SETFL, 0);
    ::close(ends[1]);
    if (closed) ::close(std::exchange(reader_, -1));
  }
  piped(const piped&) = delete;
  piped& operator=(const piped&) = delete;
  ~piped() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    if (reader_ >= 0) ::close(reader_);
  }

 private:
  int before_, reader_ = -1;
};

TEST_P(failures, a_standard_error_that_nobody_reads_stops_no_worker) {
  const auto handler_before = std::signal(SIGPIPE, SIG_DFL);
  for (const bool closed : {false, true}) {
    const piped stuck(closed);
    runtime rt(options());
    auto one = rt.spawn<fragile>();
    for (int i = 1; i <= 50; ++i) one.tell<&fragile::fail>(i);
    EXPECT_EQ(thrown_by(rt), 1);
    EXPECT_EQ(rt.metrics().failures, 50u);
  }
  std::signal(SIGPIPE, handler_before);
}

TEST_P(failures, have_their_limits_from_the_environment) {
  captured out;
  {
    const scoped_environment kept("TROUPE_FAILURES_KEPT", "3"), lines("TROUPE_FAILURE_LINES", "0"),
        stops("TROUPE_STOP_ON_FAILURE", "1");
    runtime rt(options());
    const hold open = rt.hold();
    auto one = rt.spawn<fragile>();
    for (int i = 1; i <= 10; ++i) one.tell<&fragile::fail>(i);
    EXPECT_EQ(thrown_by(rt), 1);
    EXPECT_LE(rt.errors().size(), 2u);
  }
  EXPECT_EQ(lines_of(out.take()).size(), 0u);
  const scoped_environment bad("TROUPE_FAILURES_KEPT", "0");
  EXPECT_THROW(runtime{options()}, option_error);
}

struct window {
  void show(int) {}
};

TEST_P(failures, messages_for_a_main_thread_that_never_ran_are_told_of) {
  captured out;
  {
    runtime rt(options());
    auto here = rt.spawn<window>(on_main());
    for (int i = 0; i < 3; ++i) here.tell<&window::show>(i);
  }
  const std::string text = out.take();
  EXPECT_NE(text.find("troupe: ~runtime: run() was never called: "), std::string::npos) << text;
  captured quiet;
  {
    runtime rt(options());
    auto here = rt.spawn<window>(on_main());
    for (int i = 0; i < 3; ++i) here.tell<&window::show>(i);
    rt.run();
    here.tell<&window::show>(4);
  }
  try {
    runtime rt(options());
    rt.spawn<window>(on_main()).tell<&window::show>(1);
    throw numbered(1);
  } catch (const numbered&) {
  }
  { const runtime rt(options()); }
  EXPECT_EQ(quiet.take(), "");
}

TEST_P(failures, the_limits_are_checked) {
  runtime_options chosen = options();
  chosen.failures_kept = 0;
  EXPECT_THROW(runtime{chosen}, option_error);
}

TROUPE_TEST_EACH(failures, each_policy);

}  // namespace
}  // namespace troupe::test
