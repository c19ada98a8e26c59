#include "context/current_context.hpp"

namespace troupe {
namespace contexts {

constinit thread_local context* current = nullptr;

TROUPE_NOINLINE const void* this_thread() noexcept { return &current; }

std::string describe(const context& context) {
  std::string text = "context " + std::to_string(context.number());
  if (*context.name() != '\0') text += std::string(" (") + context.name() + ")";
  return text;
}

}  // namespace contexts

TROUPE_NOINLINE context* current_context() noexcept { return contexts::current; }

TROUPE_NOINLINE context& this_context() {
  if (contexts::current == nullptr) {
    throw usage_error(
        "troupe: this_context: this thread runs no work that has a context; make one and a "
        "context_scope, and in a coroutine "
        "take a context& as a parameter");
  }
  return *contexts::current;
}

context_scope::context_scope(context& here) : before_(contexts::current), here_(here) {
  if constexpr (contexts::checked) {
    contexts::check_running(here, contexts::access::runs_on(here));
    // order: relaxed  as in check_running
    contexts::access::runs_on(here).store(contexts::this_thread(), std::memory_order_relaxed);
  }
  contexts::current = &here;
}

context_scope::~context_scope() {
  contexts::current = before_;
  // After the end of a nested scope of the same context, the outer scope is no longer checked. That
  // only makes the checks incomplete.
  // order: relaxed  as in check_running
  if constexpr (contexts::checked)
    contexts::access::runs_on(here_).store(nullptr, std::memory_order_relaxed);
}

}  // namespace troupe
