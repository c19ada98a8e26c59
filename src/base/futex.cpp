#include "troupe/base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace troupe::base {

void kernel_futex::wait(word& at, std::uint32_t expected,
                        const std::chrono::nanoseconds* limit) noexcept {
  timespec span{};
  if (limit != nullptr) {
    constexpr std::int64_t second = 1'000'000'000;
    span = {static_cast<std::time_t>(limit->count() / second),
            static_cast<long>(limit->count() % second)};
  }
  ::syscall(SYS_futex, &at, FUTEX_WAIT_PRIVATE, expected, limit != nullptr ? &span : nullptr,
            nullptr, 0);
}

void kernel_futex::wake_one(word& at) noexcept {
  ::syscall(SYS_futex, &at, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace troupe::base
