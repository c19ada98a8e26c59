#include "task/running/stack_copy.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "task/running/running.hpp"

namespace troupe::tasks {
namespace {

enum phase : std::uint64_t { idle, wanted, copying, copied };

// The number of the thread that is asked, and the phase. One word, so that a signal for a thread
// that was given up cannot begin the copy of another one (K1).
constexpr std::uint64_t word_of(int thread, phase at) noexcept {
  return static_cast<std::uint64_t>(static_cast<unsigned>(thread)) << 2 | at;
}

[[maybe_unused]] constexpr phase phase_of(std::uint64_t word) noexcept {
  return static_cast<phase>(word & 3);
}

struct request {
  std::atomic<std::uint64_t> state{idle};
  stack_range frames{};
  stack_copy copy{};
};
// Static: a late signal may look at it at any time (K3).
constinit request asked;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::int64_t now_in_handler() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

#if defined(__x86_64__)

constexpr bool is_supported = true;

void copy_registers(const ::mcontext_t& from, stack_copy& copy) noexcept {
  constexpr int in_order_of_dwarf[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  static_assert(std::size(in_order_of_dwarf) == stack_copy::register_count);
  for (std::size_t i = 0; i < stack_copy::register_count; ++i)
    copy.registers[i] = static_cast<std::uint64_t>(from.gregs[in_order_of_dwarf[i]]);
  copy.stack_pointer = static_cast<std::uint64_t>(from.gregs[REG_RSP]);
}

#elif defined(__aarch64__)

constexpr bool is_supported = true;

void copy_registers(const ::mcontext_t& from, stack_copy& copy) noexcept {
  std::copy(std::begin(from.regs), std::end(from.regs), copy.registers.begin());
  copy.registers[31] = copy.stack_pointer = from.sp;
  copy.registers[32] = from.pc;
}

#else

constexpr bool is_supported = false;
void copy_registers(const ::mcontext_t&, stack_copy&) noexcept {}

#endif

// Reads the frames of other functions of the thread: no sanitizer may check it. Word by word, since
// a compiler would make a call of memcpy of the loop, which they replace.
[[gnu::no_sanitize("address", "thread", "undefined")]] void copy_frames(
    stack_copy& copy, stack_range frames) noexcept {
  const std::uintptr_t begin = copy.stack_pointer & ~std::uintptr_t{7};
  copy.bytes = 0;
  if (begin < frames.low || begin >= frames.high) return;  // K2
  const std::size_t words =
      std::min(frames.high - begin, stack_copy::bytes_max) / sizeof(std::uint64_t);
  const auto* const from = reinterpret_cast<const volatile std::uint64_t*>(begin);
  for (std::size_t i = 0; i < words; ++i) copy.stack[i] = from[i];
  copy.stack_pointer = begin;
  copy.bytes = words * sizeof(std::uint64_t);
}

void on_signal(int, siginfo_t*, void* context) {
  const int error_before = errno;
  const std::int64_t began_ns = now_in_handler();
  const auto thread = static_cast<int>(::syscall(SYS_gettid));
  std::uint64_t expected = word_of(thread, wanted);
  // order: acquire  pairs with copy_stack/release: `frames` is of this request (K1)
  // order: relaxed (failure)  nothing is read: the owner gave up, or asks another thread
  if (asked.state.compare_exchange_strong(expected, word_of(thread, copying),
                                          std::memory_order_acquire, std::memory_order_relaxed)) {
    stack_copy& copy = asked.copy;
    copy_registers(static_cast<const ::ucontext_t*>(context)->uc_mcontext, copy);
    copy_frames(copy, asked.frames);
    const running_state& state = running_here();
    // order: relaxed (all)  the thread's own
    const bool inside = state.actor.load(std::memory_order_relaxed) != nullptr ||
                        state.in_procedure.load(std::memory_order_relaxed);
    copy.actor = inside ? state.actor.load(std::memory_order_relaxed) : nullptr;
    copy.method = inside ? state.method.load(std::memory_order_relaxed) : nullptr;
    copy.name = inside ? state.name.load(std::memory_order_relaxed) : nullptr;
    copy.held_ns = now_in_handler() - began_ns;
    // order: release  publishes the copy (K1); pairs with copy_stack/acquire
    asked.state.store(word_of(thread, copied), std::memory_order_release);
  }
  errno = error_before;
}

// A real-time signal that the program does not use; 0 if all are in use. The program may have taken
// the chosen signal meanwhile.
int choose_signal() noexcept {
  static int chosen = 0;
  struct ::sigaction seen = {};
  if (chosen != 0 && ::sigaction(chosen, nullptr, &seen) == 0 &&
      (seen.sa_flags & SA_SIGINFO) != 0 && seen.sa_sigaction == &on_signal)
    return chosen;
  chosen = 0;
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN && chosen == 0; --signal) {
    seen = {};
    if (::sigaction(signal, nullptr, &seen) != 0 || (seen.sa_flags & SA_SIGINFO) != 0 ||
        seen.sa_handler != SIG_DFL)
      continue;
    struct ::sigaction ours = {};
    ours.sa_sigaction = &on_signal;
    // On the thread's stack for crashes, if it has such a stack: the other one may be used up.
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    if (::sigaction(signal, &ours, nullptr) == 0) chosen = signal;
  }
  return chosen;
}

// A blocked signal would stay queued, or come out of a sigwait() of the program's.
bool is_blocked_in(int thread, int signal) noexcept {
  char path[64], status[4096];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ::ssize_t bytes = ::read(file, status, sizeof status - 1);
  ::close(file);
  status[bytes > 0 ? bytes : 0] = '\0';
  constexpr char name[] = "SigBlk:";
  const char* const found = std::strstr(status, name);
  return found != nullptr &&
         (std::strtoull(found + sizeof name - 1, nullptr, 16) >> (signal - 1) & 1) != 0;
}

// Waits for the handler; for its end once it has begun.
bool is_copied_in_time(int thread, std::int64_t patience_ns) noexcept {
  constexpr std::chrono::microseconds pause(20);
  const std::int64_t end_ns = base::now_ns() + patience_ns;
  for (;;) {
    // order: acquire  pairs with on_signal/release: the copy is complete (K1)
    if (asked.state.load(std::memory_order_acquire) == word_of(thread, copied)) return true;
    std::uint64_t expected = word_of(thread, wanted);
    // order: relaxed (both)  the request is withdrawn, and nothing is read
    if (base::now_ns() >= end_ns &&
        asked.state.compare_exchange_strong(expected, idle, std::memory_order_relaxed,
                                            std::memory_order_relaxed))
      return false;
    std::this_thread::sleep_for(pause);  // sleeps: the handler only copies, and wakes no thread
  }
}

}  // namespace

copy_result copy_stack(int thread, stack_range frames, std::int64_t patience_ns) noexcept {
  if (!is_supported) return copy_result::unsupported;
  const int signal = choose_signal();
  if (signal == 0) return copy_result::unsupported;
  if (is_blocked_in(thread, signal)) return copy_result::unanswered;
  // order: relaxed  only this thread begins and withdraws a request
  TROUPE_INVARIANT(phase_of(asked.state.load(std::memory_order_relaxed)) == idle ||
                       phase_of(asked.state.load(std::memory_order_relaxed)) == copied,
                   "K1");
  asked.frames = frames;
  // order: release  publishes `frames`; pairs with on_signal/acquire (K1)
  asked.state.store(word_of(thread, wanted), std::memory_order_release);
  if (::syscall(SYS_tgkill, ::getpid(), thread, signal) != 0) {
    const bool has_ended = errno == ESRCH;
    // order: relaxed  no thread has this request
    asked.state.store(idle, std::memory_order_relaxed);
    return has_ended ? copy_result::ended : copy_result::unanswered;
  }
  return is_copied_in_time(thread, patience_ns) ? copy_result::copied : copy_result::unanswered;
}

const stack_copy& last_stack_copy() noexcept { return asked.copy; }

}  // namespace troupe::tasks
