// io_uring at its limits: rings of eight entries, and systems that refuse io_uring.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/reactor/make_reactor.hpp"
#include "io/reactor/reactor.hpp"
#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/runtime_host.hpp"

namespace troupe::test {
namespace {

constexpr int clients = 100, rounds = 5;

task<> ask(endpoint at, std::atomic<int>& answers) {
  tcp_stream peer = co_await tcp_stream::connect(at);
  std::array<char, 4> got;
  for (int i = 0; i < rounds; ++i) {
    co_await peer.write_all("ping");
    co_await peer.read_exact(got);
    ++answers;
  }
}

// Each task keeps what it has read while it waits to write, so that many want a buffer of the ring
// at the same time.
task<> echo_leased(tcp_stream peer) {
  for (;;) {
    const io_buffer came = co_await peer.read_some();
    if (came.empty()) break;
    co_await yield();
    co_await peer.write_all(came.text());
  }
}

task<> serve_leased(runtime& rt, tcp_listener listener) {
  for (int i = 0; i < clients; ++i) {
    tcp_stream peer = co_await listener.accept();
    rt.spawn(echo_leased(std::move(peer)));
  }
}

task<> all_leased(runtime& rt, std::atomic<int>& answers) {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  rt.spawn(serve_leased(rt, std::move(listener)));
  for (int i = 0; i < clients; ++i) rt.spawn(ask(at, answers));
  co_return;
}

task<> all(runtime& rt, std::atomic<int>& answers) {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  rt.spawn(serve(rt, std::move(listener), clients));
  for (int i = 0; i < clients; ++i) rt.spawn(ask(at, answers));
  co_return;
}

template <class Program = decltype(&all)>
int answers_with(unsigned workers, Program program = &all) {
  std::atomic<int> answers{0};
  runtime rt({.workers = workers, .policy = policy::work_stealing, .io = io_backend::io_uring});
  rt.spawn(program(rt, answers));
  rt.run();
  return answers.load();
}

bool is_simulated() {
  const char* forced = std::getenv("TROUPE_POLICY");
  return forced != nullptr && *forced != '\0';
}

TEST(io_rings, completions_that_do_not_fit_are_not_lost) {
  if (is_simulated()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no ring";
  for (const unsigned workers : {1u, 2u}) {
    io::set_uring_entries(8, 8);
    EXPECT_EQ(answers_with(workers), clients * rounds);
    io::set_uring_entries(256, 4096);
  }
}

// Counts how often the system is asked for completions that did not fit into the ring.
class counting_kernel final : public faulty_kernel {
 public:
  counting_kernel() : faulty_kernel(call::listen, 1000, 0) {}
  int enter_ring(int ring, unsigned submitted, unsigned least, unsigned flags, void* arg,
                 std::size_t bytes) noexcept override {
    if (flags == IORING_ENTER_GETEVENTS) ++overflows;
    return faulty_kernel::enter_ring(ring, submitted, least, flags, arg, bytes);
  }
  std::atomic<int> overflows{0};
};

task<> all_beside_one_who_never_rests(runtime& rt, std::atomic<int>& answers) {
  auto busy = [](std::atomic<int>& seen) -> task<> {
    while (seen.load() != clients * rounds) co_await yield();
  };
  rt.spawn(busy(answers));
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  rt.spawn(serve_leased(rt, std::move(listener)));
  for (int i = 0; i < clients; ++i) rt.spawn(ask(at, answers));
  co_return;
}

// No worker sleeps in the ring, where the system would hand over by itself what did not fit.
TEST(io_rings, completions_that_do_not_fit_come_to_a_worker_that_never_rests) {
  if (is_simulated()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no ring";
  counting_kernel counting;
  const io::replaced_kernel replaced(counting);
  io::set_uring_entries(8, 8, 1);
  EXPECT_EQ(answers_with(1, &all_beside_one_who_never_rests), clients * rounds);
  io::set_uring_entries(256, 4096);
  EXPECT_GT(counting.overflows.load(), 0);
}

TEST(io_rings, a_ring_of_one_buffer_or_none_serves_all) {
  if (is_simulated()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no ring";
  for (const unsigned workers : {1u, 2u}) {
    for (const unsigned leases : {0u, 1u, 2u}) {
      io::set_uring_entries(8, 8, leases);
      EXPECT_EQ(answers_with(workers, &all_leased), clients * rounds);
      io::set_uring_entries(256, 4096);
    }
  }
}

// Takes one entry at a time, and often refuses even that, as a system does that is short of memory
// at the moment.
class sparing_kernel final : public faulty_kernel {
 public:
  explicit sparing_kernel(int refusal) : faulty_kernel(call::listen, 1000, 0), refusal_(refusal) {}
  int enter_ring(int ring, unsigned submitted, unsigned least, unsigned flags, void* arg,
                 std::size_t bytes) noexcept override {
    if (submitted == 0) return faulty_kernel::enter_ring(ring, submitted, least, flags, arg, bytes);
    if (++calls_ % 3 == 0) return -refusal_;
    return faulty_kernel::enter_ring(ring, 1, submitted == 1 ? least : 0,
                                     submitted == 1 ? flags : 0, arg, submitted == 1 ? bytes : 0);
  }

 private:
  const int refusal_;
  std::atomic<int> calls_{0};
};

TEST(io_rings, what_the_system_has_no_memory_for_just_now_is_asked_for_again) {
  if (is_simulated()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no ring";
  for (const int refusal : {EAGAIN, EBUSY, EINTR, ENOMEM}) {
    sparing_kernel sparing(refusal);
    const io::replaced_kernel replaced(sparing);
    for (const unsigned workers : {1u, 2u}) EXPECT_EQ(answers_with(workers), clients * rounds);
  }
}

// A wake that comes before the sleep is not lost, even if the thread looks in between.
TEST(io_rings, a_wake_that_comes_before_the_wait_counts) {
  if (is_simulated()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no ring";
  int refused = 0;
  runtime_host runtime;
  const auto ring = io::make_uring_reactor(io::system_kernel(), runtime, refused);
  if (ring == nullptr) GTEST_SKIP() << "needs io_uring: the system refused a ring";
  ASSERT_TRUE(ring->door.try_enter());
  sched::unshared_events fetched;
  for (const bool looks : {false, true}) {
    ring->wake();
    if (looks) {
      EXPECT_FALSE(ring->poll(fetched.events, false));
    }
    const std::chrono::nanoseconds limit = std::chrono::seconds(20);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_FALSE(ring->wait(fetched.events, &limit));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  }
  ring->door.leave();
}

// Refuses io_uring as a sandbox does.
void refuse_rings(int number) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K,
               SECCOMP_RET_ERRNO | (static_cast<unsigned>(number) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(io_rings, where_rings_are_forbidden_epoll_takes_over_and_says_so_once) {
  if (is_simulated()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has no ring";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int number : {ENOSYS, EPERM, EINVAL}) {
    EXPECT_EXIT(
        {
          refuse_rings(number);
          const bool right =
              answers_with(1) == clients * rounds && answers_with(2) == clients * rounds;
          std::fprintf(stderr, "end\n");
          ::_exit(right ? 0 : 1);
        },
        testing::ExitedWithCode(0),
        "^troupe: io_uring is not available here \\([^)]*\\): epoll is used instead; "
        "allow io_uring \\(sysctl kernel.io_uring_disabled=0, and the seccomp profile of a "
        "container\\), or choose io_backend::epoll\nend\n$");
  }
}

}  // namespace
}  // namespace troupe::test
