
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <troupe/log/log.hpp>
#include <troupe/troupe.hpp>
#include <utility>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::log {
namespace {

using namespace std::chrono_literals;

// Collects the lines that are written while it exists.
class lines {
 public:
  explicit lines(form as) {
    configure({.as = as, .file = {}, .callback = [this](std::string_view one) {
                 std::lock_guard lock(mutex_);
                 all_.emplace_back(one);
               }});
  }
  ~lines() { configure({}); }
  std::vector<std::string> take() {
    flush();
    std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }
  // The only one, without its time.
  std::string one() {
    const auto all = take();
    EXPECT_EQ(all.size(), 1u);
    if (all.size() != 1) return {};
    const bool is_json = all[0].starts_with("{\"time\":\"");
    return is_json
               ? "{" + all[0].substr(std::string("{'time':'2026-01-02T03:04:05.678901Z',").size())
               : all[0].substr(std::string("2026-01-02T03:04:05.678901Z ").size());
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

TEST(log, fields_have_types) {
  lines seen(form::json);
  const std::string who = "Ada";
  info("order taken", {{"id", 7},
                       {"who", who},
                       {"big", std::uint64_t{18446744073709551615u}},
                       {"paid", true},
                       {"price", 2.5},
                       {"took", 1500us},
                       {"text", "a b"}});
  EXPECT_EQ(
      seen.one(),
      R"({"level":"info","text":"order taken","fields":{"id":7,"who":"Ada","big":18446744073709551615,)"
      R"("paid":true,"price":2.5,"took":0.0015,"text":"a b"}})");
  const std::runtime_error failed("no disk");
  const auto kept = std::make_exception_ptr(failed);
  const auto code = std::make_error_code(std::errc::permission_denied);
  error("failed", {{"a", failed},
                   {"b", kept},
                   {"c", code},
                   {"d", std::exception_ptr()},
                   {"e", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(seen.one(), R"({"level":"error","text":"failed","fields":{"a":"no disk","b":"no disk",)"
                        R"("c":"Permission denied","d":"none","e":"inf"}})");
}

TEST(log, text_is_for_people) {
  lines seen(form::text);
  logger("orders").warning("taken", {{"who", "Ada L"}, {"took", 1500us}, {"id", -1}, {"e", ""}});
  EXPECT_EQ(seen.one(), R"(warning orders: taken who="Ada L" took=1.5ms id=-1 e="")");
  info("two\nlines \x1b[2J");
  EXPECT_EQ(seen.one(), R"(info    two\nlines \u001b[2J)");
}

TEST(log, json_is_valid_for_all_bytes) {
  lines seen(form::json);
  info("\xff\"\n", {{"a\xc3", std::string_view("\0\x80", 2)}});
  EXPECT_EQ(seen.one(),
            "{\"level\":\"info\",\"text\":\"\xEF\xBF\xBD\\\"\\n\",\"fields\":{\"a\xEF\xBF\xBD\":"
            "\"\\u0000\xEF\xBF\xBD\"}}");
}

TEST(log, levels_change_while_it_runs) {
  lines seen(form::text);
  const logger named("levels"), same("levels"), other("others");
  EXPECT_FALSE(is_on(level::debug));
  int made = 0;
  const auto make = [&] { return ++made; };
  debug("off", {{"made", make}});
  EXPECT_EQ(made, 0);
  set_level("levels", level::debug);
  same.debug("named", {{"made", make}});
  other.debug("off");
  EXPECT_EQ(seen.one(), "debug   levels: named made=1");
  set_level(level::trace);
  EXPECT_TRUE(is_on(level::trace) && other.is_on(level::trace) && !named.is_on(level::trace));
  set_level(level::info);
  set_level("levels", level::off);
  named.error("off");
  EXPECT_TRUE(seen.take().empty());
  level found{};
  EXPECT_TRUE(level_of("warning", found) && found == level::warning && !level_of("loud", found));
}

TEST(log, a_callable_that_throws_gives_its_error) {
  lines seen(form::json);
  const auto bad = []() -> int { throw std::runtime_error("no value"); };
  info("x", {{"bad", bad}, {"good", 1}});
  EXPECT_EQ(seen.one(), R"({"level":"info","text":"x","fields":{"bad":"no value","good":1}})");
}

struct Shop {
  void sell() { info("sold", {{"id", 7}}); }
  task<> wait() {
    info("before", {{"n", 1}});
    co_await sleep_for(1ms);
    info("after", {{"n", 2}});
  }
};

TEST(log, a_line_names_the_actor_and_the_trace) {
  lines seen(form::json);
  runtime rt;
  auto shop = rt.spawn<Shop>();
  const auto trace = trace_context::begin();
  rt.spawn([](ref<Shop> to, trace_context in) -> task<> {
    co_await with_trace(in, [&] { return to.ask<&Shop::sell>(); });
    co_await to.ask<&Shop::wait>();
  }(shop, trace));
  rt.run();
  const auto all = seen.take();
  ASSERT_EQ(all.size(), 3u);
  const std::string id = std::to_string(shop.id()), parent = trace.traceparent();
  EXPECT_NE(all[0].find("::Shop\",\"actor_id\":" + id + ",\"trace_id\":\"" + parent.substr(3, 32) +
                        "\",\"span_id\":\"" + parent.substr(36, 16) + "\"}"),
            std::string::npos)
      << all[0];
  EXPECT_NE(all[2].find("\"actor_id\":" + id + "}"), std::string::npos) << all[2];
}

TEST(log, a_full_buffer_drops_and_counts) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_blocked = false, may_go = false;
  std::vector<std::string> written;
  configure({.callback = [&](std::string_view one) {
    std::unique_lock lock(mutex);
    is_blocked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_go; });
    written.emplace_back(one);
  }});
  const counts before = count();
  info("first");
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_blocked; });
  }
  const std::string large(1000, 'x');
  constexpr unsigned lines = 3000;
  for (unsigned i = 0; i < lines; ++i) info(large, {{"i", i}});
  const counts now = count();
  EXPECT_EQ(now.lines - before.lines, lines + 1);
  const std::uint64_t dropped = now.dropped - before.dropped;
  EXPECT_GT(dropped, lines / 2);
  EXPECT_LT(dropped, lines);
  {
    std::lock_guard lock(mutex);
    may_go = true;
    changed.notify_all();
  }
  flush();
  configure({});
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(written.size(), lines + 2 - dropped);  // and the one that tells it
  const std::string told = "lines were dropped dropped=" + std::to_string(dropped);
  EXPECT_TRUE(std::any_of(written.begin(), written.end(),
                          [&](const auto& one) { return one.ends_with(told); }));
}

std::string content(const std::filesystem::path& of) {
  std::ifstream file(of);
  return (std::stringstream() << file.rdbuf()).str();
}

class log_file : public testing::Test {
 protected:
  log_file() {
    std::string name = testing::TempDir() + "troupe_log_XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~log_file() override {
    configure({});
    std::filesystem::remove_all(folder);
  }
  std::filesystem::path folder;
};

TEST_F(log_file, is_opened_anew_on_demand) {
  const auto file = folder / "a.log", old = folder / "a.log.1";
  configure({.file = file});
  info("one");
  flush();
  std::filesystem::rename(file, old);
  info("two");
  flush();
  reopen();
  info("three");
  flush();
  EXPECT_NE(content(old).find("two\n"), std::string::npos);
  EXPECT_NE(content(file).find("three\n"), std::string::npos);
  EXPECT_EQ(content(file).find("two"), std::string::npos);
}

// Until a file can be opened, lines go where they went before.
TEST_F(log_file, that_cannot_be_opened_is_tried_again) {
  const auto before = folder / "a.log", missing = folder / "no" / "a.log";
  configure({.file = before});
  configure({.file = missing});
  info("one");
  flush();
  EXPECT_NE(content(before).find("one\n"), std::string::npos);
  std::filesystem::create_directory(folder / "no");
  while (content(missing).empty()) {
    info("two");
    flush();
  }
  EXPECT_NE(content(missing).find("two\n"), std::string::npos);
}

// A named pipe without a reader, and one whose reader takes nothing, hold nobody up for long.
TEST_F(log_file, that_nobody_reads_holds_nobody_up) {
  const auto pipe = folder / "pipe", file = folder / "a.log";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  configure({.file = pipe});
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  configure({.file = pipe});
  const std::string large(1000, 'x');
  for (int i = 0; i < 200; ++i) info(large);
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  flush();
  configure({.file = file});
  flush();
  // What the pipe has not taken is in the file.
  EXPECT_GT(content(file).size(), 100 * large.size());
  ::close(reader);
}

TEST_F(log_file, on_a_full_device_drops_and_counts) {
  configure({.file = "/dev/full"});
  const std::uint64_t before = count().dropped;
  info("lost");
  flush();
  EXPECT_GE(count().dropped, before + 1);
}

TEST_F(log_file, has_the_lines_of_each_thread_in_order) {
  const auto file = folder / "b.log";
  configure({.as = form::json, .file = file});
  constexpr int threads = 4, each = 5000;
  const std::uint64_t dropped = count().dropped;
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([t] {
      for (int i = 0; i < each; ++i) {
        info("line", {{"t", t}, {"i", i}});
        if (i % 500 == 0) flush();
      }
    });
  }
  all.clear();
  flush();
  EXPECT_EQ(count().dropped, dropped);
  std::istringstream text(content(file));
  int next[threads]{}, seen = 0;
  for (std::string one; std::getline(text, one); ++seen) {
    const int t = one[one.find("\"t\":") + 4] - '0';
    ASSERT_NE(one.find("\"i\":" + std::to_string(next[t]++) + "}}"), std::string::npos) << one;
  }
  EXPECT_EQ(seen, threads * each);
}

using log_file_DeathTest = log_file;

TEST_F(log_file_DeathTest, is_whole_after_a_crash_and_a_normal_end) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const kept = std::getenv("TROUPE_LOG_TEST");
  const auto file = kept != nullptr ? std::filesystem::path(kept) : folder / "c.log";
  ::setenv("TROUPE_LOG_TEST", file.c_str(), 1);
  const auto log_then = [&](auto end) {
    configure({.file = file});
    for (int i = 0; i < 100; ++i) info("line", {{"i", i}});
    end();
  };
  // A sanitizer's handler of the signal exits.
  const auto has_failed = [](int status) { return status != 0; };
  for (const int signal : {SIGABRT, SIGSEGV, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    SCOPED_TRACE(signal);
    EXPECT_EXIT(log_then([&] { ::raise(signal); }), has_failed, "");
    EXPECT_NE(content(file).find("i=99\n"), std::string::npos);
    std::filesystem::remove(file);
  }
  EXPECT_EXIT(log_then([] { std::exit(3); }), testing::ExitedWithCode(3), "");
  EXPECT_NE(content(file).find("i=99\n"), std::string::npos);
  std::filesystem::remove(file);
  EXPECT_EXIT(log_then([] { std::quick_exit(4); }), testing::ExitedWithCode(4), "");
  EXPECT_NE(content(file).find("i=99\n"), std::string::npos);
  ::unsetenv("TROUPE_LOG_TEST");
}

// Its frames are so large that 5 ms, after which the log's thread writes, are long.
TROUPE_NOINLINE int overflow(const volatile char* above) {
  volatile char frame[std::size_t{64} << 10];
  frame[0] = above == nullptr ? '1' : above[0];
  return frame[0] == '0' ? 0 : overflow(frame) + frame[0];
}

TEST_F(log_file_DeathTest, is_whole_when_the_stack_of_a_thread_that_logs_overflows) {
  if (test::slow) GTEST_SKIP() << "needs an unsanitized build: a sanitizer has its own handler";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const kept = std::getenv("TROUPE_LOG_TEST");
  const auto file = kept != nullptr ? std::filesystem::path(kept) : folder / "o.log";
  ::setenv("TROUPE_LOG_TEST", file.c_str(), 1);
  const auto overflow_after_lines = [&] {
    configure({.file = file});
    std::thread other([] {
      for (int i = 0; i < 100; ++i) info("line", {{"i", i}});
      static_cast<void>(overflow(nullptr));
    });
    other.join();
  };
  EXPECT_EXIT(overflow_after_lines(), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_NE(content(file).find("i=99\n"), std::string::npos);
  ::unsetenv("TROUPE_LOG_TEST");
}

TEST_F(log_file_DeathTest, leaves_requests_to_end_to_the_program_that_handles_them) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto own_handler = [] {
    ::signal(SIGTERM, [](int) { ::_exit(7); });
    ::signal(SIGHUP, SIG_IGN);
    info("line");
    ::raise(SIGHUP);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(own_handler(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace troupe::log
