#include "context/current_context.hpp"

#include "troupe/base/error.hpp"

namespace troupe {
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

context_scope::context_scope(context& entered) : before_(contexts::current), entered_(entered) {
  if constexpr (contexts::checked) {
    contexts::check_running(entered.number(), entered.name(), contexts::access::runs_on(entered));
    // order: relaxed  as in check_running
    contexts::access::runs_on(entered).store(contexts::this_thread(), std::memory_order_relaxed);
  }
  contexts::current = &entered;
}

context_scope::~context_scope() {
  contexts::current = before_;
  // After the end of a nested scope of the same context, the outer scope is no longer checked. That
  // only makes the checks incomplete.
  // order: relaxed  as in check_running
  if constexpr (contexts::checked)
    contexts::access::runs_on(entered_).store(nullptr, std::memory_order_relaxed);
}

}  // namespace troupe
