// A reactor whose descriptors are divided into shards: one sleeper waits for all of them, and
// workers that are always busy look into each.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>
#include <vector>

#include "io/reactor/make_reactor.hpp"
#include "io/reactor/reactor.hpp"
#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/runtime_host.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr unsigned shards_of_test = 4;
constexpr std::size_t pipes_of_test = 16;
constexpr auto shard_patience = 20s;

// Makes the real calls, and remembers which sets have descriptors, and into which a thread looked.
class set_kernel final : public faulty_kernel {
 public:
  set_kernel() : faulty_kernel(call::listen, INT_MAX, 0) {}
  int add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept override {
    if (tag != 0) note(added_, set);
    return faulty_kernel::add(set, fd, events, tag);
  }
  int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept override {
    const int came = faulty_kernel::wait_events(set, events, most, timeout_ms);
    if (came > 0) note(reported_, set);
    return came;
  }

  std::size_t sets_with_descriptors() { return size_of(added_); }
  std::size_t sets_with_events() { return size_of(reported_); }

 private:
  void note(std::set<int>& in, int set) noexcept {
    std::lock_guard lock(mutex_);
    in.insert(set);
  }
  std::size_t size_of(const std::set<int>& counted) {
    std::lock_guard lock(mutex_);
    return counted.size();
  }
  std::mutex mutex_;
  std::set<int> added_, reported_;
};

// Each of its sets always has an event.
class full_sets final : public faulty_kernel {
 public:
  full_sets() : faulty_kernel(call::listen, INT_MAX, 0) {}
  int wait_for_sets(pollfd* sets, unsigned number, int) noexcept override {
    for (unsigned i = 0; i + 1 < number; ++i) sets[i].revents = POLLIN;
    sets[number - 1].revents = 0;  // the bell
    return static_cast<int>(number) - 1;
  }
  int wait_events(int set, epoll_event* events, int, int) noexcept override {
    looked_into.insert(set);
    events[0].data.u64 = 1;
    return 1;
  }
  std::set<int> looked_into;
};

using pipe_ends = std::array<int, 2>;
std::array<pipe_ends, pipes_of_test> make_pipes() {
  std::array<pipe_ends, pipes_of_test> pipes{};
  for (pipe_ends& ends : pipes) EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return pipes;
}

task<> read_to_the_end(pipe_stream stream, std::counting_semaphore<>& came) {
  std::array<char, 8> buffer;
  while (co_await stream.read(buffer) != 0) came.release();
}

// Turns of its own without end, until the test is over.
struct busy_actor {
  std::atomic<bool>* is_over;
  ref<busy_actor> self;
  void begin(ref<busy_actor> own) {
    self = std::move(own);
    turn();
  }
  void turn() {
    for (int i = 0; i < 200; ++i) base::std_atomics::pause();
    if (!*is_over) return self.tell<&busy_actor::turn>();
    self = {};
  }
};

class io_shards : public testing::Test {
 protected:
  void SetUp() override {
    const char* forced = std::getenv("TROUPE_POLICY");
    if (forced != nullptr && *forced != '\0')
      GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no shards";
    io::set_shards(shards_of_test);
  }
  void TearDown() override { io::set_shards(0); }

  // Writes to one pipe after the other, several times, and waits for each byte.
  static void drive(const std::array<pipe_ends, pipes_of_test>& pipes,
                    std::counting_semaphore<>& came) {
    for (int round = 0; round < 20; ++round) {
      for (const pipe_ends& ends : pipes) {
        ASSERT_EQ(::write(ends[1], "x", 1), 1);
        ASSERT_TRUE(came.try_acquire_for(shard_patience)) << "round " << round;
      }
    }
  }

  static void run(unsigned busy_actors) {
    set_kernel calls;
    const io::replaced_kernel replaced(calls);
    const std::array<pipe_ends, pipes_of_test> pipes = make_pipes();
    std::counting_semaphore<> came{0};
    std::atomic<bool> over{false};
    runtime rt({.workers = 4, .policy = policy::work_stealing, .io = io_backend::epoll});
    for (const pipe_ends& ends : pipes)
      rt.spawn(read_to_the_end(pipe_stream::adopt(ends[0]), came));
    for (unsigned i = 0; i < busy_actors; ++i) {
      const auto actor = rt.spawn<busy_actor>(&over);
      actor.tell<&busy_actor::begin>(actor);
    }
    std::thread driver([&, open = rt.hold()] {
      drive(pipes, came);
      over = true;
      for (const pipe_ends& ends : pipes) ::close(ends[1]);
    });
    rt.run();
    driver.join();
    EXPECT_EQ(calls.sets_with_descriptors(), shards_of_test);
    EXPECT_GE(calls.sets_with_events(), shards_of_test);
  }
};

TEST_F(io_shards, have_one_sleeper_for_all) { run(0); }
TEST_F(io_shards, are_looked_into_by_busy_workers) { run(8); }

TEST_F(io_shards, are_not_hidden_by_a_shard_that_never_runs_empty) {
  full_sets calls;
  runtime_host host;
  const auto shared = io::make_readiness_reactor(calls, host, shards_of_test);
  for (unsigned i = 0; i < shards_of_test; ++i) {
    sched::unshared_events fetched;
    EXPECT_TRUE(shared->poll(fetched.events, false));
  }
  EXPECT_EQ(calls.looked_into.size(), shards_of_test);
}

}  // namespace
}  // namespace troupe::test
