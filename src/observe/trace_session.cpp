#include "observe/trace_session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "base/side_channels/bounded_write.hpp"
#include "base/side_channels/side_channel.hpp"
#include "observe/ring.hpp"
#include "observe/ticks.hpp"
#include "observe/write.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::observe {
namespace {

constinit base::side_channel trace_file("the trace");

// The state of the process, from the first runtime on. Never destroyed.
struct recording {
  std::mutex mutex;
  int runtimes = 0;
  bool asked = false;   // the environment was read
  bool wanted = false;  // it asks for a trace
  std::string path;     // of the file; empty: a table on standard error
  int file = -1;        // -1: it is not open yet
  tick_scale began;

  static recording& get() {
    static recording& instance = *new recording;
    return instance;
  }

  // Does not wait for the reader of a named pipe. Returns an error number, or 0.
  int open_file() noexcept {
    if (path.empty() || file >= 0) return 0;
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
    return file < 0 ? errno : 0;
  }

  // Tries to open the file first, if that has failed so far. A signal handler may call it.
  bool write() noexcept {
    if (path.empty()) return write_table(STDERR_FILENO, began);
    if (const int error = open_file(); error != 0) {
      trace_file.failed(path.c_str(), error);
      return false;
    }
    struct ::stat is = {};
    // Only a regular file has old content to remove.
    const bool empty =
        ::fstat(file, &is) == 0 &&
        (!S_ISREG(is.st_mode) || (::ftruncate(file, 0) == 0 && ::lseek(file, 0, SEEK_SET) == 0));
    return write_chrome(file, began) && empty;
  }

  // The same at an end of the program that is no crash.
  void write_at_end() noexcept {
    if (write()) return trace_file.works();
    trace_file.failed(path.c_str(), 0,
                      "it was not written as a whole: is the disk full, or does nobody read?");
  }
};

void say(const char* text) noexcept {
  constexpr int patience_ms = 100;
  static_cast<void>(base::bounded_write(STDERR_FILENO, text, patience_ms));
}

// A signal that ends the program. A signal from another process is caught only where the program
// leaves it to the system; one that the program waits for never comes here.
struct fatal_signal {
  int signal;
  const char* mark;
  bool is_crash = true;
  bool is_caught = false;
  struct ::sigaction before {};
};
fatal_signal fatal_signals[] = {
    {SIGSEGV, "crashed: SIGSEGV"},        {SIGBUS, "crashed: SIGBUS"},
    {SIGILL, "crashed: SIGILL"},          {SIGFPE, "crashed: SIGFPE"},
    {SIGABRT, "crashed: SIGABRT"},        {SIGINT, "ended by SIGINT", false},
    {SIGTERM, "ended by SIGTERM", false}, {SIGHUP, "ended by SIGHUP", false}};

constinit std::atomic<pid_t> crashed_first{0};     // the thread that writes the trace
constinit std::atomic<bool> crash_written{false};  // that thread has written it
constinit std::atomic<void (*)() noexcept> writes_too{nullptr};

void write_trace(bool is_crash) noexcept {
  // Other threads continue; their records from here on are not read.
  for (const watched each :
       {watched::events, watched::trace_contexts, watched::counts, watched::spans})
    unwatch(each);
  const bool done = recording::get().write();
  say(is_crash ? (done ? "troupe: the trace up to the crash was written\n"
                       : "troupe: the trace up to the crash could not be written\n")
               : (done ? "troupe: the trace up to the signal was written\n"
                       : "troupe: the trace up to the signal could not be written\n"));
}

void write_crash(bool is_crash) noexcept {
  if (recording::get().wanted) write_trace(is_crash);
  // order: acquire  pairs with write_at_crash
  if (const auto write = writes_too.load(std::memory_order_acquire); is_crash && write != nullptr)
    write();
  crash_written.store(true, std::memory_order_release);  // order: release  pairs with await_writer
}

// Waits until the first thread has written the trace. The same bug in two workers is the usual way
// to crash, and the signal of a second thread would end the process while the first one writes. The
// wait is bounded, because the first thread may hang. It polls, because a handler must not wait for
// a lock.
void await_writer() noexcept {
  constexpr int naps_max = 30'000, nap_ms = 1;
  // order: acquire  pairs with write_crash
  for (int i = 0; i < naps_max && !crash_written.load(std::memory_order_acquire); ++i)
    ::poll(nullptr, 0, nap_ms);
}

// Passes on the kernel's data about the signal, for example the address: a handler that was
// installed before may read it.
void raise_again(int signal, ::siginfo_t& why) noexcept {
  if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), signal, &why) != 0) ::raise(signal);
}

// Writes the trace, restores the previous actions of the signals, and raises the signal again.
void on_fatal_signal(int signal, ::siginfo_t* why, void*) {
  const int error_before = errno;
  pid_t first = 0;
  const pid_t self = ::gettid();
  // order: relaxed (both)  decides which thread is the first; its output is a file
  if (crashed_first.compare_exchange_strong(first, self, std::memory_order_relaxed)) {
    bool is_crash = true;
    for (const fatal_signal& caught : fatal_signals) {
      if (caught.signal != signal) continue;
      is_crash = caught.is_crash;
      // a thread that was just taking memory or a lock must not take any here
      if (tracing()) mark_in_ring(caught.mark);
    }
    write_crash(is_crash);
  } else if (first != self) {  // otherwise writing the trace has crashed
    await_writer();
  }
  for (const fatal_signal& caught : fatal_signals) {
    if (caught.is_caught) ::sigaction(caught.signal, &caught.before, nullptr);
  }
  raise_again(signal, *why);
  errno = error_before;
}

// Crashes, and with a trace also requests to end. The caller holds the lock of `recording`.
void catch_fatal_signals(bool requests_too) noexcept {
  struct ::sigaction action = {};
  action.sa_sigaction = &on_fatal_signal;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (fatal_signal& caught : fatal_signals) {
    if (caught.is_caught || !(caught.is_crash || requests_too)) continue;
    ::sigaction(caught.signal, nullptr, &caught.before);
    const bool is_default =
        (caught.before.sa_flags & SA_SIGINFO) == 0 && caught.before.sa_handler == SIG_DFL;
    caught.is_caught = caught.is_crash || is_default;
    if (caught.is_caught) ::sigaction(caught.signal, &action, nullptr);
  }
}

// Called by exit(), even while runtimes still exist.
void at_exit() {
  recording& now = recording::get();
  std::lock_guard lock(now.mutex);
  if (now.runtimes != 0) now.write_at_end();
}

void begin(recording& now) {
  const char* const setting = std::getenv("TROUPE_TRACE");
  if (setting == nullptr || *setting == '\0') return;
  const std::string wanted = setting;
  if (wanted != "text") {
    if (!wanted.ends_with(".json")) {
      throw option_error("troupe: environment variable TROUPE_TRACE=" + wanted +
                         ": must be text, or a file's name that ends in .json");
    }
    now.path = wanted;
    // A named pipe may have no reader yet (ENXIO).
    const int error = now.open_file();
    if (error != 0 && error != ENXIO)
      trace_file.failed("TROUPE_TRACE=" + wanted + " cannot be written", error);
  }
  now.wanted = true;
  now.began = tick_scale();
  watch(watched::events);
  catch_fatal_signals(true);
  std::atexit(&at_exit);
}

}  // namespace

void write_at_crash(void (*write)() noexcept) noexcept {
  std::lock_guard lock(recording::get().mutex);
  // order: release  pairs with write_crash
  writes_too.store(write, std::memory_order_release);
  catch_fatal_signals(false);
}

trace_session::trace_session() {
  recording& now = recording::get();
  std::lock_guard lock(now.mutex);
  if (!now.asked) begin(now);
  now.asked = true;
  ++now.runtimes;
}

trace_session::~trace_session() {
  recording& now = recording::get();
  std::lock_guard lock(now.mutex);
  if (--now.runtimes != 0 || !now.wanted || !tracing()) return;
  now.write_at_end();
}

}  // namespace troupe::observe
