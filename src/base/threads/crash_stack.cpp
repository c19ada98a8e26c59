#include "base/threads/crash_stack.hpp"

#include <signal.h>

#include <cstddef>
#include <cstdlib>

namespace troupe::base {
namespace {

struct own_stack {
  void* memory = nullptr;
  ~own_stack() {
    if (memory == nullptr) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    std::free(memory);
  }
};
thread_local own_stack of_thread;
constinit thread_local bool was_asked = false;

}  // namespace

void make_crash_stack() noexcept {
  if (was_asked) return;
  was_asked = true;
  stack_t before = {};
  if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
  stack_t own = {};
  own.ss_size = std::size_t{64} << 10;
  own.ss_sp = std::malloc(own.ss_size);
  if (own.ss_sp == nullptr) return;
  if (::sigaltstack(&own, nullptr) == 0) {
    of_thread.memory = own.ss_sp;
  } else {
    std::free(own.ss_sp);
  }
}

}  // namespace troupe::base
