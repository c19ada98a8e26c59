#include "runtime/lifetime/quit_signal.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>

#include "base/side_channels/bounded_write.hpp"
#include "base/side_channels/side_channel.hpp"
#include "runtime/core/runtime_core.hpp"
#include "runtime/services/served_runtimes.hpp"

namespace troupe {
namespace {

// An eventfd. Never closed, since a signal handler may still be about to write to it, even after
// the signal's disposition has changed.
constinit std::atomic<int> bell{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void ring() noexcept {
  const std::uint64_t signals = 1;
  // order: relaxed  written before the handler was installed
  [[maybe_unused]] const auto written =
      ::write(bell.load(std::memory_order_relaxed), &signals, sizeof signals);
}

void on_quit(int) {
  const int before = errno;
  ring();
  errno = before;
}

constinit base::side_channel dump_at_signal("the dump at SIGQUIT");

class listener {
 public:
  static listener& get() {
    static listener& instance = *new listener;
    return instance;
  }

  void add(runtime_core& core) {
    served_.add(core, [this] { start(); });
  }

  void remove(runtime_core& core) noexcept {
    served_.remove(core, [this] { end(); });
  }

 private:
  void end() noexcept {
    struct sigaction now {};
    ::sigaction(SIGQUIT, nullptr, &now);
    if (now.sa_handler == &on_quit) ::sigaction(SIGQUIT, &before_, nullptr);
    // order: release  pairs with listen/acquire
    ending_.store(true, std::memory_order_release);
    ring();
    if (thread_.joinable()) thread_.join();
  }

  // Where that is not possible, SIGQUIT keeps its former meaning.
  void start() noexcept {
    // order: relaxed (both)  one thread at a time starts or ends it
    if (bell.load(std::memory_order_relaxed) < 0) {
      const int fd = ::eventfd(0, EFD_CLOEXEC);
      if (fd < 0) return dump_at_signal.failed("eventfd", errno);
      bell.store(fd, std::memory_order_relaxed);  // order: relaxed  as above
    }
    // order: relaxed  the thread starts afterwards
    ending_.store(false, std::memory_order_relaxed);
    // The thread takes none of the program's signals but this one.
    sigset_t others, before;
    sigfillset(&others);
    sigdelset(&others, SIGQUIT);
    ::pthread_sigmask(SIG_SETMASK, &others, &before);
    try {
      thread_ = std::thread([this] { listen(); });
    } catch (const std::system_error& failed) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      return dump_at_signal.failed("no thread can be started", failed.code().value());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    struct sigaction ours {};
    ours.sa_handler = &on_quit;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    ::sigaction(SIGQUIT, &ours, &before_);
    dump_at_signal.works();
  }

  void listen() {
    for (;;) {
      std::uint64_t rings = 0;
      // order: relaxed  written before this thread was started
      const auto got = ::read(bell.load(std::memory_order_relaxed), &rings, sizeof rings);
      // order: acquire  pairs with remove/release
      if (ending_.load(std::memory_order_acquire)) return;
      if (got == sizeof rings) dump_all();
    }
  }

  void dump_all() noexcept {
    std::string text;
    try {
      text = served_.with_all([](const auto& cores) {
        std::string all;
        for (runtime_core* core : cores) all += core->dump();
        return all;
      });
    } catch (const std::bad_alloc&) {
      text = "troupe: dump: memory is out\n";
    }
    constexpr int patience_ms = 2'000;
    const auto written = base::bounded_write(STDERR_FILENO, text, patience_ms);
    if (written.error == 0) return dump_at_signal.works();
    dump_at_signal.failed("standard error", written.error);
  }

  served_runtimes<runtime_core> served_;
  std::atomic<bool> ending_{false};
  struct sigaction before_ {};
  std::thread thread_;
};

}  // namespace

void listen_for_quit(runtime_core& core) { listener::get().add(core); }
void ignore_quit(runtime_core& core) noexcept { listener::get().remove(core); }

}  // namespace troupe
