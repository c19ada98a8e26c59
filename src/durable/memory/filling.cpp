#include "durable/memory/filling.hpp"

#include <utility>

#include "troupe/task/limits.hpp"

namespace troupe::durable::parts {

// With the mutex held. A caller waits for this batch because of that message.
void filling::begin_span(const record& message) {
  if (message.trace.get() == nullptr) [[likely]]
    return;
  tasks::context_ref context = tasks::context_ref::make_spanned(
      *message.trace.get(), tasks::span_kind::internal, "durable commit");
  if (context.get() != nullptr) spans.push_back(std::move(context));
}

// `failure` may be null. Not under the mutex.
void filling::end_spans(const std::exception_ptr& failure) noexcept {
  for (const tasks::context_ref& context : spans) {
    tasks::add_to_span(*context.get(), "troupe.durable.batch",
                       static_cast<std::int64_t>(data.number));
    tasks::add_to_span(*context.get(), "troupe.durable.turns", static_cast<std::int64_t>(turns));
    tasks::end_span(*context.get(), failure);
  }
  spans.clear();
}

}  // namespace troupe::durable::parts
