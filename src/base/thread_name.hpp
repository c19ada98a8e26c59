// thread_name: the name of a thread in debuggers, `top -H` and traces.
#pragma once

#include <pthread.h>

#include <cstdio>

namespace troupe::base {

// The number of the worker whose thread this is, from 1 on; 0 for other threads.
inline constinit thread_local unsigned worker_number = 0;

// At most 15 characters.
inline void name_this_thread(const char* role, unsigned number) noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%s %u", role, number);
  ::pthread_setname_np(::pthread_self(), name);
}
inline void name_this_thread(const char* role) noexcept {
  ::pthread_setname_np(::pthread_self(), role);
}

}  // namespace troupe::base
