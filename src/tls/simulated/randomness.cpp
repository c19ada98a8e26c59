#include "tls/simulated/randomness.hpp"

#include <openssl/rand.h>

#include <utility>

#include "io/kernel/kernel.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/base/platform.hpp"

// OpenSSL 3 replaces its generator by a provider. A provider serves a whole library context, and so
// all keys that were loaded in it: the keys of the program's certificates. The method of OpenSSL
// 1.1, which 3 still asks first, can decide for each call.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace troupe::tls {
namespace {

constinit thread_local randomness* in_use = nullptr;

// Never inlined: a coroutine must not keep the address of the thread's pointer.
TROUPE_NOINLINE randomness* exchange_in_use(randomness* next) noexcept {
  return std::exchange(in_use, next);
}

}  // namespace

randomness::randomness(const stream& over) {
  const tasks::runtime_state* const simulation = tasks::simulation_here();
  if (simulation == nullptr || over.fd() < io::kernel::first_simulated) return;
  simulated_.emplace(simulation->runtime.choose_number());
  static const bool is_set = [] {
    static RAND_METHOD mine = *RAND_OpenSSL();
    mine.bytes = &fill;
    mine.pseudorand = &fill;
    return RAND_set_rand_method(&mine) == 1;
  }();
  static_cast<void>(is_set);
}

int randomness::fill(unsigned char* to, int bytes) {
  if (in_use == nullptr) return RAND_OpenSSL()->bytes(to, bytes);
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<unsigned char>((*in_use->simulated_)());
  return 1;
}

randomness::use::use(randomness& source) noexcept
    : before_(exchange_in_use(source.simulated_ ? &source : nullptr)) {}

randomness::use::~use() { exchange_in_use(before_); }

}  // namespace troupe::tls

#pragma GCC diagnostic pop
