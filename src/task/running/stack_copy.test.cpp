#include "task/running/stack_copy.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <latch>
#include <thread>

namespace troupe::tasks {
namespace {

constexpr std::int64_t long_ns = 30'000'000'000, short_ns = 5'000'000;
constexpr std::uint64_t mark = 0x5eed'0000'cafe'1234;

// A call that no signal ends early. ThreadSanitizer holds signals back until there is a call.
void pass() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
}

// A thread that computes, with a mark in its frame, until the object goes.
class busy_thread {
 public:
  explicit busy_thread(bool blocks_signals = false)
      : thread_([this, blocks_signals] { run(blocks_signals); }) {
    begun_.wait();
  }
  busy_thread(const busy_thread&) = delete;
  busy_thread& operator=(const busy_thread&) = delete;
  ~busy_thread() {
    if (thread_.joinable()) end();
  }
  void end() {
    ends_ = true;
    unblock();
    thread_.join();
  }
  void unblock() {
    unblocks_ = true;
    unblocked_.wait();
  }
  int number() const { return number_; }
  stack_range frames() const { return frames_; }
  int error() const { return error_; }

 private:
  // AddressSanitizer would put the marks elsewhere than on the thread's stack.
  [[gnu::no_sanitize_address]] void run(bool blocks_signals) {
    sigset_t all, before;
    sigfillset(&all);
    if (blocks_signals) ::pthread_sigmask(SIG_SETMASK, &all, &before);
    volatile std::uint64_t marks[] = {mark, mark + 1, mark + 2};
    constexpr std::uintptr_t below = 64 << 10;
    const auto at = reinterpret_cast<std::uintptr_t>(&marks);
    frames_ = {at - below, at + sizeof marks};
    number_ = ::gettid();
    errno = ENOTUNIQ;
    begun_.count_down();
    while (!unblocks_) pass();
    if (blocks_signals) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    unblocked_.count_down();
    while (!ends_) pass();
    error_ = errno;
  }

  std::latch begun_{1}, unblocked_{1};
  std::atomic<bool> unblocks_{false}, ends_{false};
  stack_range frames_{};
  int number_ = 0, error_ = 0;
  std::thread thread_;
};

bool has_marks(const stack_copy& copy) {
  const auto end = copy.stack.begin() + static_cast<std::ptrdiff_t>(copy.bytes / sizeof mark);
  const std::uint64_t marks[] = {mark, mark + 1, mark + 2};
  return std::search(copy.stack.begin(), end, std::begin(marks), std::end(marks)) != end;
}

TEST(stack_copy, has_the_frames_of_a_thread_that_computes) {
  busy_thread busy;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(copy_stack(busy.number(), busy.frames(), long_ns), copy_result::copied);
    const stack_copy& copy = last_stack_copy();
    EXPECT_TRUE(has_marks(copy));
    EXPECT_LE(copy.stack_pointer + copy.bytes, busy.frames().high);
    EXPECT_NE(std::ranges::count(copy.registers, 0u), std::ssize(copy.registers));
    EXPECT_EQ(copy.method, nullptr) << "it runs nothing of a runtime's";
  }
  busy.end();
  EXPECT_EQ(busy.error(), ENOTUNIQ) << "the handler keeps errno";
}

TEST(stack_copy, ends_at_the_end_of_the_stack) {
  busy_thread busy;
  const stack_range all = busy.frames();
  for (const stack_range frames :
       {stack_range{}, stack_range{all.high, all.high + 64}, stack_range{all.low - 64, all.low}}) {
    ASSERT_EQ(copy_stack(busy.number(), frames, long_ns), copy_result::copied);
    EXPECT_EQ(last_stack_copy().bytes, 0u);
  }
  ASSERT_EQ(copy_stack(busy.number(), {all.low, all.high - sizeof mark}, long_ns),
            copy_result::copied);
  EXPECT_EQ(last_stack_copy().stack_pointer + last_stack_copy().bytes, all.high - sizeof mark);
}

TEST(stack_copy, needs_a_thread_that_lives) {
  busy_thread busy;
  const int number = busy.number();
  busy.end();
  EXPECT_EQ(copy_stack(number, busy.frames(), short_ns), copy_result::ended);
}

TEST(stack_copy, gives_up_a_thread_that_takes_no_signal) {
  busy_thread blocked(true), busy;
  EXPECT_EQ(copy_stack(blocked.number(), blocked.frames(), short_ns), copy_result::unanswered);
  ASSERT_EQ(copy_stack(busy.number(), busy.frames(), long_ns), copy_result::copied);
  const std::uint64_t of_busy = last_stack_copy().stack_pointer;
  blocked.unblock();  // its signal comes now, and finds no request
  EXPECT_EQ(last_stack_copy().stack_pointer, of_busy);
  EXPECT_TRUE(has_marks(last_stack_copy()));
  ASSERT_EQ(copy_stack(blocked.number(), blocked.frames(), long_ns), copy_result::copied);
  EXPECT_TRUE(has_marks(last_stack_copy()));
}

}  // namespace
}  // namespace troupe::tasks
