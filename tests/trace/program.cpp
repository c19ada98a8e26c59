// Does a little of everything that a trace has events for. The argument says how the program ends:
// return | exit | crash | segv | deep | interrupt | terminate | hang_up | listen | both | flood |
// crowd | mended.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;

struct Counter {
  int sum = 0;
  void add(int n) { sum += n; }
  int total() const { return sum; }
};

TROUPE_NOINLINE int deep(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth < 0 ? room[0] : deep(depth + 1) + room[0];
}

struct Asker {
  troupe::ref<Counter> of;
  troupe::task<> ask_slowly() {
    co_await troupe::sleep_for(2ms);
    const int total = co_await of.ask<&Counter::total>();
    troupe::trace_mark("the total \"so far\"", static_cast<std::uint64_t>(total));
    const troupe::lazy later([] { return 6 * 7; });
    co_await later;
  }
  void crash(std::string how) {
    const troupe::trace_span span("about to crash");
    if (how == "crash") std::abort();
    if (how == "deep") deep(0);
    if (how == "interrupt") ::kill(::getpid(), SIGINT);
    if (how == "terminate") ::kill(::getpid(), SIGTERM);
    if (how == "hang_up") ::kill(::getpid(), SIGHUP);
    if (how != "segv") std::this_thread::sleep_for(std::chrono::hours(1));  // sleeps: until it ends
    ::raise(SIGSEGV);
  }
};

troupe::task<> read_one(int fd) {
  co_await troupe::readable(fd);
  std::uint64_t count = 0;
  static_cast<void>(::read(fd, &count, sizeof count));
}

void compute() {
  const troupe::trace_span span("compute");
  troupe::trace_mark("no text: \xff\xc3(\xe2\x82\xac");
  troupe::trace_mark("two\nlines\x1b[31m\x7f");
  std::array<troupe::lazy<int>, 4> parts{
      troupe::lazy([] { return 1; }), troupe::lazy([] { return 2; }),
      troupe::lazy([] { return 3; }), troupe::lazy([] { return 4; })};
  int sum = 0;
  for (const auto& part : parts) sum += part.get();
  if (sum != 10) std::abort();
}

// Two workers crash at once. There is so much to write that the second one crashes long before the
// first one has written it.
void crash_both(troupe::runtime& rt) {
  static std::atomic<int> ready{0};
  for (const int signal : {SIGABRT, SIGSEGV}) {
    rt.post([signal] {
      for (int i = 0; i < 40'000; ++i) troupe::trace_mark("filled", static_cast<std::uint64_t>(i));
      ++ready;
      while (ready.load() != 2) std::this_thread::yield();
      ::raise(signal);
    });
  }
}

// A handler that the program had set before, and that lets the program continue: it makes the
// touched page accessible.
void mend(int, siginfo_t* why, void*) {
  auto* const page = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(why->si_addr) &
                                             ~std::uintptr_t{4095});
  if (::mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) ::_exit(9);
}

void handle_faults() {
  struct sigaction action = {};
  action.sa_sigaction = &mend;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

void touch_what_is_mended() {
  auto* const page = static_cast<volatile char*>(
      ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *page = 1;
}

// A signal that the program waits for does not end it.
troupe::task<> hear_a_signal() {
  auto signals = troupe::signal_listener::listen({SIGTERM});
  ::kill(::getpid(), SIGTERM);
  co_await signals.next();
}

// Starts more threads than a table has entries.
void come_and_go() {
  for (int i = 0; i < 400; ++i) std::thread([] { troupe::trace_mark("came and went"); }).join();
}

}  // namespace

int main(int, char** arguments) {
  const std::string_view ending = arguments[1];
  if (ending == "mended") handle_faults();
  troupe::runtime rt;
  auto counter = rt.spawn<Counter>();
  auto asker = rt.spawn<Asker>(counter);
  const int messages = ending == "flood" ? 100'000 : 100;
  for (int i = 0; i < messages; ++i) counter.tell<&Counter::add>(1);
  asker.tell<&Asker::ask_slowly>();
  const int bell = ::eventfd(0, 0);
  rt.spawn(read_one(bell));
  rt.after(1ms, [bell] {
    const std::uint64_t one = 1;
    static_cast<void>(::write(bell, &one, sizeof one));
  });
  rt.post(&compute);
  const troupe::owned_context work = troupe::make_context({.name = "work"});
  rt.run();
  if (ending == "crowd") come_and_go();
  compute();
  ::close(bell);
  if (ending == "exit") std::exit(3);
  constexpr std::string_view crashing[] = {"crash",     "segv",      "deep",
                                           "interrupt", "terminate", "hang_up"};
  if (std::ranges::find(crashing, ending) != std::end(crashing))
    asker.tell<&Asker::crash>(std::string(ending));
  if (ending == "both") crash_both(rt);
  if (ending == "listen") rt.spawn(hear_a_signal());
  if (ending == "mended") rt.post(&touch_what_is_mended);
  rt.run();
}
