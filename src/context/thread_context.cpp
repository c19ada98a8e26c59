#include "context/thread_context.hpp"

#include "troupe/base/platform.hpp"

namespace troupe::contexts {

constinit thread_local context* current = nullptr;

TROUPE_NOINLINE const void* this_thread() noexcept { return &current; }

std::string describe(std::uint64_t number, const char* name) {
  std::string text = "context " + std::to_string(number);
  if (*name != '\0') text += std::string(" (") + name + ")";
  return text;
}

}  // namespace troupe::contexts
