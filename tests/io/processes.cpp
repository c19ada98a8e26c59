// Child processes: what they write, how they end, and that nothing of them is left.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_processes : public io_conformance {
 protected:
  template <class Make>
  void run(Make make) {
    const int before = open_files();
    {
      runtime rt(options());
      rt.spawn(make(rt));
      rt.run();
    }
    EXPECT_TRUE(no_child_is_left());
    // The thread that reaps in the background closes its descriptors when it has ended.
    while (open_files() > before) std::this_thread::yield();
    EXPECT_EQ(open_files(), before);
  }
  static bool no_child_is_left() {
    siginfo_t how{};
    while (::waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) == 0) std::this_thread::yield();
    return errno == ECHILD;
  }
  static task<std::string> text_of(pipe_stream& from) {
    std::string all;
    std::array<char, 1000> part;
    for (;;) {
      const std::size_t bytes = co_await from.read(part);
      if (bytes == 0) co_return all;
      all.append(part.data(), bytes);
    }
  }
  static task<std::string> output_of(std::string script, process_options how) {
    how.out = child_stream::pipe();
    process shell = process::start("sh", {"-c", script}, how);
    std::string said = co_await text_of(shell.out());
    const exit_status ended = co_await shell.wait();
    co_return said + "|" + ended.to_string();
  }
};

TEST_P(io_processes, what_it_is_given_comes_back) {
  auto writes = [](pipe_stream to) -> task<> { co_await to.write_all(std::string(300'000, 'x')); };
  auto program = [&writes](runtime& rt) -> task<> {
    process_options piped;
    piped.in = piped.out = child_stream::pipe();
    process cat = process::start("cat", {}, piped);
    EXPECT_GT(cat.id(), 0);
    rt.spawn(writes(std::move(cat.in())));
    const std::string all = co_await text_of(cat.out());
    EXPECT_EQ(all.size(), 300'000u);
    const exit_status ended = co_await cat.wait();
    EXPECT_TRUE(ended.success());
    const exit_status again = co_await cat.wait();
    EXPECT_EQ(again, ended);
    EXPECT_FALSE(cat.kill());
  };
  run(program);
}

TEST_P(io_processes, codes_and_signals_are_told_apart) {
  auto program = [](runtime&) -> task<> {
    process three = process::start("sh", {"-c", "exit 3"});
    exit_status ended = co_await three.wait();
    EXPECT_EQ(ended.code(), 3);
    EXPECT_EQ(ended.to_string(), "exited with 3");
    EXPECT_FALSE(ended.success());
    process sleeps = process::start("sleep", {"1000"});
    EXPECT_TRUE(sleeps.kill(SIGTERM));
    ended = co_await sleeps.wait();
    EXPECT_EQ(ended.signal(), SIGTERM);
    EXPECT_FALSE(ended.code().has_value());
    // In the child, signals have their usual effect, whatever effect they have in this process.
    auto ends = pipe_stream::make();
    process itself = process::start("sh", {"-c", "kill -PIPE $$"});
    ended = co_await itself.wait();
    EXPECT_EQ(ended.signal(), SIGPIPE);
  };
  run(program);
}

TEST_P(io_processes, environment_directory_and_streams_are_as_chosen) {
  const scratch folder;
  const std::string log = folder / "log";
  auto program = [&](runtime&) -> task<> {
    process_options how;
    how.environment = std::vector<std::string>{"WHO=world", "PATH=/usr/bin:/bin"};
    how.directory = folder / "";
    how.err = child_stream::null();
    std::string said = co_await output_of("echo hello $WHO $HOME; echo lost >&2; pwd >log", how);
    EXPECT_EQ(said, "hello world\n|exited with 0");
    EXPECT_NE((folder / "").find(scratch::text_of(log).substr(0, scratch::text_of(log).size() - 1)),
              std::string::npos);

    // The child's errors go to the same place as its output: a descriptor that this process has
    // open.
    const int fd = ::open(log.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    process_options into;
    into.in = child_stream::null();
    into.out = into.err = child_stream::descriptor(fd);
    process shell =
        process::start("sh", {"-c", "echo one; echo two >&2; cat; ls /proc/self/fd | wc -l"}, into);
    ::close(fd);
    const exit_status ended = co_await shell.wait();
    EXPECT_TRUE(ended.success());
    // No other descriptor of this process is open in the child: ls sees the three standard ones,
    // and the one with which it looks.
    EXPECT_EQ(scratch::text_of(log), "one\ntwo\n4\n");
  };
  run(program);
}

TEST_P(io_processes, what_cannot_be_started_is_named) {
  auto program = [](runtime&) -> task<> {
    const auto refusal = [](const std::string& name, const process_options& how) {
      try {
        static_cast<void>(process::start(name, {}, how));
      } catch (const io_error& e) {
        return std::string(e.what());
      }
      return std::string("it was started");
    };
    process_options piped;
    piped.in = piped.out = piped.err = child_stream::pipe();
    EXPECT_NE(refusal("no-such-program-here", piped).find("no-such-program-here"),
              std::string::npos);
    EXPECT_NE(refusal("no-such-program-here", piped).find("No such file"), std::string::npos);
    EXPECT_NE(refusal("/dev/null", piped).find("Permission denied"), std::string::npos);
    process_options elsewhere;
    elsewhere.directory = "/no/such/folder";
    EXPECT_NE(refusal("true", elsewhere).find("/no/such/folder"), std::string::npos);
    process_options closed;
    closed.out = child_stream::descriptor(9'999);
    EXPECT_NE(refusal("true", closed).find("Bad file descriptor"), std::string::npos);
    // The child would get a text that is cut at the zero byte.
    const std::string odd("a\0b", 3);
    process_options odd_place, odd_environment;
    odd_place.directory = odd;
    odd_environment.environment = std::vector<std::string>{"PATH=/bin:/usr/bin", odd};
    EXPECT_THROW(process::start(std::string("true\0", 5)), option_error);
    EXPECT_THROW(process::start("true", {"x", odd}), option_error);
    EXPECT_THROW(process::start("true", {}, odd_place), option_error);
    EXPECT_THROW(process::start("true", {}, odd_environment), option_error);
    bool refused = false;
    try {
      process none;
      co_await none.wait();
    } catch (const usage_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  };
  run(program);
}

TEST_P(io_processes, a_wait_that_is_given_up_loses_nothing) {
  auto program = [](runtime& rt) -> task<> {
    process_options piped;
    piped.in = child_stream::pipe();
    process cat = process::start("cat", {}, piped);
    bool late = false, stopped = false;
    try {
      co_await cat.wait().timeout(2ms);
    } catch (const timed_out&) {
      late = true;
    }
    std::stop_source end;
    rt.after(1ms, [&end] { end.request_stop(); });
    try {
      co_await cat.wait().stop(end.get_token());
    } catch (const cancelled&) {
      stopped = true;
    }
    EXPECT_TRUE(late && stopped);
    cat.in().close();
    const exit_status ended = co_await cat.wait();
    EXPECT_TRUE(ended.success());
  };
  run(program);
}

TEST_P(io_processes, any_number_may_wait_for_one) {
  std::atomic<int> told{0};
  auto waits = [&told](std::shared_ptr<process> one) -> task<> {
    const exit_status ended = co_await one->wait();
    told += ended.success() ? 1 : 0;
  };
  auto program = [&waits](runtime& rt) -> task<> {
    process_options piped;
    piped.in = child_stream::pipe();
    auto cat = std::make_shared<process>(process::start("cat", {}, piped));
    for (int i = 0; i < 10; ++i) rt.spawn(waits(cat));
    co_await yield();
    cat->in().close();
  };
  run(program);
  EXPECT_EQ(told.load(), 10);
}

// A process object is destroyed without a wait: the child is reaped all the same, whether it has
// ended, ends because its pipes are closed, or is killed.
TEST_P(io_processes, what_is_dropped_is_reaped_in_the_background) {
  auto program = [](runtime&) -> task<> {
    for (int i = 0; i < 5; ++i) {
      process_options piped;
      piped.in = child_stream::pipe();
      process cat = process::start("cat", {}, piped);
      process quick = process::start("true");
      process killed = process::start("sleep", {"1000"});
      killed.kill();
    }
    co_return;
  };
  run(program);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_processes);

}  // namespace troupe::test
