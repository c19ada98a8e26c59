// thread_name: what debuggers, `top -H` and traces call a thread.
#pragma once

#include <pthread.h>

#include <cstdio>

namespace troupe::base {

// Which worker of its pool the thread is, from 1 on; 0: none.
inline constinit thread_local unsigned worker_number = 0;

// 15 characters at most.
inline void name_this_thread(const char* role, unsigned number) noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%s %u", role, number);
  ::pthread_setname_np(::pthread_self(), name);
}
inline void name_this_thread(const char* role) noexcept {
  ::pthread_setname_np(::pthread_self(), role);
}

}  // namespace troupe::base
