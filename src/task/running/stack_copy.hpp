// stack_copy: the registers of a running thread and the innermost part of its stack, from which a
// tool in another process finds the functions that the thread is in.
//
// A signal interrupts the thread. Its handler copies, and does nothing else: it holds the thread
// for some microseconds, and is safe wherever the thread is. A thread that is never asked for does
// nothing for it.
//
// Owner: the thread that asks, one at a time. The handler runs in the thread that is asked.
// Invariants
//   K1  the handler writes the copy only between `wanted` -> `copying`, which succeeds for the
//       thread that is asked alone, and `copied`; the owner touches it at no time in between.
//   K2  the handler reads the stack only from the stack pointer up to `stack_range::high`, and only
//       if the stack pointer lies in that range, which is mapped as long as the thread lives.
//   K3  the signal keeps its handler: one that arrives after its owner gave up finds nothing to do.
// Rejected: ptrace, which needs a permission that most containers do not give, and stops the thread
// for as long as a debugger needs; process_vm_readv by the owner, for which the thread has to wait
// until it is done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "troupe/sched/message.hpp"

namespace troupe::tasks {

// The part of the address space in which the frames of a thread lie.
struct stack_range {
  std::uintptr_t low = 0, high = 0;
};

struct stack_copy {
  static constexpr std::size_t bytes_max = std::size_t{32} << 10;
#if defined(__x86_64__)
  static constexpr std::size_t register_count = 17;  // in the order of DWARF; the last is rip
#else
  static constexpr std::size_t register_count = 33;  // x0 to x30, sp, pc
#endif

  std::array<std::uint64_t, register_count> registers{};
  std::uint64_t stack_pointer = 0;
  std::size_t bytes = 0;  // of the stack, from the stack pointer on
  std::array<std::uint64_t, bytes_max / sizeof(std::uint64_t)> stack{};
  // the handler at that instant, as in running_work
  sched::message::handler method = nullptr;
  const char* name = nullptr;
  const void* actor = nullptr;
  std::int64_t held_ns = 0;  // how long the handler took
};

enum class copy_result : std::uint8_t {
  copied,
  ended,        // there is no such thread
  unsupported,  // no processor that is known, or all signals are in use by the program
  unanswered    // the thread did not take the signal in time
};

// Asks the thread of this number (gettid), and waits for at most `patience_ns`. Calls of a blocking
// system call that the system cannot restart (poll, epoll_wait, nanosleep) end with EINTR in that
// thread. Thread: any, one thread at a time.
copy_result copy_stack(int thread, stack_range frames, std::int64_t patience_ns) noexcept;
// The copy that the last call made, if that call returned `copied`.
const stack_copy& last_stack_copy() noexcept;

}  // namespace troupe::tasks
