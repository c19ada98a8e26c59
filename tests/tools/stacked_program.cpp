// A program whose stacks `troupe stack` and `troupe profile` show: two handlers that compute, one
// three times as long as the other, and one that waits for bytes in a system call. It ends when its
// standard input ends, and prints how the reads of the third one ended.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string_view>
#include <thread>
#include <troupe/troupe.hpp>

std::atomic<bool> has_ended{false};

// Computes for that long by the thread's own clock, so that a loaded machine changes no ratio.
[[gnu::noinline]] std::uint64_t compute(std::chrono::microseconds time) {
  const auto now = [] {
    timespec spent{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
  };
  std::uint64_t sum = 0;
  for (const auto end = now() + time; now() < end;)
    for (unsigned i = 0; i < 20'000; ++i) sum = sum * 31 + i;
  return sum;
}

struct Spinner {
  std::uint64_t sum = 0;
  [[gnu::noinline]] void spin_on() {
    while (!has_ended) sum += compute(std::chrono::microseconds(1'000));  // the line of the stack
  }
};

// The turns of two handlers, one of which is defined outside of its class.
struct Tally {
  int value = 0;
  void add(int more);
  void clear() { value = 0; }
};
void Tally::add(int more) { value += more; }

struct Large {
  std::uint64_t sum = 0;
  [[gnu::noinline]] void large_part() { sum += compute(std::chrono::microseconds(3'000)); }
};
struct Small {
  std::uint64_t sum = 0;
  [[gnu::noinline]] void small_part() { sum += compute(std::chrono::microseconds(1'000)); }
};
// Both in turn.
struct Both {
  troupe::ref<Large> large;
  troupe::ref<Small> small;
  troupe::task<> alternate() {
    while (!has_ended) {
      co_await large.ask<&Large::large_part>();
      co_await small.ask<&Small::small_part>();
    }
  }
};

struct Reader {
  int from;
  [[gnu::noinline]] void read_byte() {
    char byte = 0;
    const auto got = ::read(from, &byte, 1);
    std::cout << (got == 1 ? "read" : errno == EINTR ? "EINTR" : "failed") << std::endl;
  }
};

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return 1;
  troupe::runtime_options options;
  options.workers = part == "both" ? 1 : 2;
  options.warning_lines = 0;
  troupe::runtime rt(options);
  if (part == "spin") rt.spawn<Spinner>().tell<&Spinner::spin_on>();
  if (part == "read") rt.spawn<Reader>(ends[0]).tell<&Reader::read_byte>();
  if (part == "signals") {
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_IGN);
    rt.spawn<Spinner>().tell<&Spinner::spin_on>();
  }
  if (part == "turns") {
    rt.spawn(
        [](troupe::ref<Tally> tally) -> troupe::task<> {
          co_await tally.ask<&Tally::add>(1);
          co_await tally.ask<&Tally::clear>();
          co_await tally.ask<&Tally::add>(2);
        },
        rt.spawn<Tally>());
  }
  if (part == "private") ::prctl(PR_SET_DUMPABLE, 0);
  if (part == "both") rt.spawn<Both>(rt.spawn<Large>(), rt.spawn<Small>()).tell<&Both::alternate>();
  troupe::hold here = rt.hold();
  std::thread waits([&] {
    std::cout << "ready" << std::endl;
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
    has_ended = true;
    if (::write(ends[1], "x", 1) != 1) std::cout << "not written" << std::endl;
    here = {};
  });
  rt.run();
  waits.join();
}
