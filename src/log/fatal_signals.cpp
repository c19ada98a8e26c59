#include "log/fatal_signals.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace troupe::log {
namespace {

// Signals that end the process. A request to end is caught only if the program does not handle it
// itself. Not SIGPIPE, which the I/O ignores where nothing else is set, nor SIGTRAP, which is the
// debugger's.
struct fatal {
  int signal;
  bool is_request = false;
  bool is_caught = false;
  struct ::sigaction before {};
};
fatal fatals[] = {{SIGSEGV},      {SIGBUS},        {SIGILL},        {SIGFPE},
                  {SIGABRT},      {SIGSYS, true},  {SIGTERM, true}, {SIGINT, true},
                  {SIGHUP, true}, {SIGQUIT, true}, {SIGXCPU, true}};

void (*write_log)() noexcept = nullptr;         // set before the signals are caught
constinit std::atomic<::pid_t> first{0};        // the thread that writes the log
constinit std::atomic<bool> is_written{false};  // that thread has written it

// The signal of a second thread would end the process while the first one writes. The wait is
// bounded, because the first thread may hang.
void await_first() noexcept {
  constexpr int naps_max = 2'000, nap_ms = 1;
  // order: acquire  pairs with on_fatal
  for (int i = 0; i < naps_max && !is_written.load(std::memory_order_acquire); ++i)
    ::poll(nullptr, 0, nap_ms);
}

// Writes the buffer, restores the previous actions, and raises the signal again, with the kernel's
// data about it.
void on_fatal(int signal, ::siginfo_t* why, void*) {
  const int error_before = errno;
  ::pid_t seen = 0;
  const ::pid_t self = ::gettid();
  // order: relaxed (both)  decides which thread writes
  if (first.compare_exchange_strong(seen, self, std::memory_order_relaxed)) {
    write_log();
    is_written.store(true, std::memory_order_release);  // order: release  pairs with await_first
  } else if (seen != self) {                            // otherwise writing the log has crashed
    await_first();
  }
  for (const fatal& entry : fatals) {
    if (entry.is_caught) ::sigaction(entry.signal, &entry.before, nullptr);
  }
  if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), signal, why) != 0) ::raise(signal);
  errno = error_before;
}

}  // namespace

void catch_fatal_signals(void (*write)() noexcept) noexcept {
  write_log = write;
  struct ::sigaction action = {};
  action.sa_sigaction = &on_fatal;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (fatal& entry : fatals) {
    if (::sigaction(entry.signal, nullptr, &entry.before) != 0) continue;
    const bool is_default =
        (entry.before.sa_flags & SA_SIGINFO) == 0 && entry.before.sa_handler == SIG_DFL;
    entry.is_caught = !entry.is_request || is_default;
    if (entry.is_caught) ::sigaction(entry.signal, &action, nullptr);
  }
}

}  // namespace troupe::log
