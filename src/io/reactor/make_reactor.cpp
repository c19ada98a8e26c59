#include "io/reactor/make_reactor.hpp"

#include <unistd.h>

#include <atomic>
#include <string>
#include <system_error>

#include "base/side_channels/bounded_write.hpp"
#include "io/kernel/kernel.hpp"
#include "io/simulated/simulated_kernel.hpp"
#include "troupe/io/backend.hpp"

namespace troupe::io {
namespace {

std::atomic<unsigned> chosen_shards{0};

void say_once(int refused) {
  static std::atomic<bool> said{false};
  // order: relaxed  guards this message only
  if (said.exchange(true, std::memory_order_relaxed)) return;
  const std::string text = "troupe: io_uring is not available here (" +
                           std::generic_category().message(refused) +
                           "): epoll is used instead; allow io_uring (sysctl "
                           "kernel.io_uring_disabled=0, and the seccomp "
                           "profile of a container), or choose io_backend::epoll\n";
  constexpr int patience_ms = 20;
  static_cast<void>(base::bounded_write(STDERR_FILENO, text, patience_ms));
}

}  // namespace

std::shared_ptr<reactor> make_reactor(sched::io_driver_slot& driver) {
  sched::runtime_host& runtime = driver.runtime;
  if (driver.simulation != nullptr) {
    return make_readiness_reactor(std::make_unique<simulated_kernel>(*driver.simulation), runtime);
  }
  // The reasons are in docs/decisions/io_rings.md.
  if (static_cast<io_backend>(driver.choice) == io_backend::io_uring) {
    int refused = 0;
    if (auto ring = make_uring_reactor(system_kernel(), runtime, refused)) return ring;
    say_once(refused);
  }
  // order: relaxed  a test sets it before there is a reactor
  const unsigned chosen = chosen_shards.load(std::memory_order_relaxed);
  return make_readiness_reactor(system_kernel(), runtime,
                                chosen != 0 ? chosen : driver.pool->io_shards());
}

// order: relaxed  as above
void set_shards(unsigned number) noexcept {
  chosen_shards.store(number, std::memory_order_relaxed);
}

}  // namespace troupe::io
