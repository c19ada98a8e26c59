// The fault table of processes, pipes and signals: every call fails with every error, at its first
// call and at later ones. Each time the program ends, the caller that was refused gets a typed
// error, and no descriptor, object or child is left.
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "interposed.hpp"
#include "support/counted.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr auto far = 10s;  // a wait that takes this long hangs

struct outcomes {
  int fine = 0, refused = 0, hung = 0, code = 0;
};

template <class Part>
task<> watched(Part part, outcomes& seen) {
  const counted alive;
  try {
    co_await part();
    ++seen.fine;
  } catch (const io_error& e) {
    ++seen.refused;
    seen.code = e.code().value();
  } catch (const end_of_stream&) {
    ++seen.refused;
  } catch (const timed_out&) {
    ++seen.hung;
  }
}

task<> talks_to_a_child() {
  process_options piped;
  piped.in = piped.out = child_stream::pipe();
  piped.err = child_stream::null();
  process cat = process::start("cat", {}, piped);
  co_await cat.in().write_all("some text").timeout(far);
  cat.in().close();
  std::array<char, 9> back{};
  co_await cat.out().read_exact(back).timeout(far);
  const exit_status ended = co_await cat.wait().timeout(far);
  EXPECT_TRUE(ended.success()) << ended.to_string();
  EXPECT_FALSE(cat.kill());
}

task<> ends_a_child() {
  process sleeper = process::start("sleep", {"60"});
  try {
    EXPECT_TRUE(sleeper.kill(SIGTERM));
  } catch (const io_error&) {
    sleeper.kill();
    throw;
  }
  const exit_status ended = co_await sleeper.wait().timeout(far);
  EXPECT_EQ(ended, exit_status(SIGTERM, true));
}

task<> leaves_a_child() {
  process_options piped;
  piped.in = child_stream::pipe();
  pipe_stream held;  // the child ends when this pipe is closed, which is after it was left
  process cat = process::start("cat", {}, piped);
  held = std::move(cat.in());
  co_return;
}

task<> hears_a_signal() {
  // A weak one would let the program end before the ring has read what the signal wrote.
  auto listener = signal_listener::listen({SIGUSR1, SIGUSR2}, {.weak = false});
  std::raise(SIGUSR1);
  const int came = co_await listener.next().timeout(far);
  EXPECT_EQ(came, SIGUSR1);
}

task<> all_of_them(outcomes& seen) {
  auto first = [] { return talks_to_a_child(); };
  co_await watched(first, seen);
  auto second = [] { return ends_a_child(); };
  co_await watched(second, seen);
  auto third = [] { return leaves_a_child(); };
  co_await watched(third, seen);
  auto fourth = [] { return hears_a_signal(); };
  co_await watched(fourth, seen);
}

struct faulty_call {
  call kind;
  io_backend by;
};

class process_faults : public testing::TestWithParam<faulty_call> {
 protected:
  bool run(int nth, int fault, outcomes& seen) {
    const int before = open_files();
    bool came = false;
    {
      const failing one(GetParam().kind, nth, fault);
      {
        runtime rt({.workers = 1, .io = GetParam().by});
        rt.spawn(all_of_them(seen));
        rt.run();
      }
      came = one.came();
    }
    EXPECT_TRUE(within(5s, [] {
      siginfo_t how{};
      return ::waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) != 0;
    })) << "a child is left";
    // The thread that reaps in the background closes its descriptors when it has ended.
    EXPECT_TRUE(within(5s, [before] { return open_files() == before; }))
        << open_files() - before << " descriptors are left";
    EXPECT_EQ(live.load(), 0);
    EXPECT_EQ(seen.hung, 0);
    return came;
  }
  template <class Condition>
  static bool within(std::chrono::seconds most, Condition condition) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_P(process_faults, each_error_is_typed_and_nothing_is_left) {
  const call kind = GetParam().kind;
  for (const int fault :
       {EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNRESET, EPIPE, ETIMEDOUT}) {
    for (const int nth : {0, 1, 2, 4}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(nth) + " " +
                   std::strerror(fault));
      outcomes seen;
      if (!run(nth, fault, seen)) {
        EXPECT_NE(nth, 0) << "there was no such call";
        continue;
      }
      EXPECT_EQ(seen.fine + seen.refused, 4);
      EXPECT_LE(seen.refused, 1);
      if (seen.refused == 1) {
        EXPECT_EQ(seen.code, fault);
      }
      if (kind == call::waitid && fault == EINTR) {
        EXPECT_EQ(seen.refused, 0);
      }
      if (kind == call::pipe2 || kind == call::posix_spawnp || kind == call::pidfd_open) {
        EXPECT_EQ(seen.refused, 1);
      }
    }
  }
}

std::vector<faulty_call> on_each_backend() {
  std::vector<faulty_call> all;
  for (const call kind : all_calls) {
    all.push_back({kind, io_backend::epoll});
    all.push_back({kind, io_backend::io_uring});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(calls, process_faults, ::testing::ValuesIn(on_each_backend()),
                         [](const auto& one) {
                           return std::string(name_of(one.param.kind)) + "_" +
                                  name_of(one.param.by);
                         });

}  // namespace
}  // namespace troupe::test
