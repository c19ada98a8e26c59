#include "actor/counting/message_counts.hpp"

#include <new>
#include <utility>

#include "base/invariant.hpp"
#include "base/thread_name.hpp"
#include "observe/ticks.hpp"

namespace troupe::actor {
namespace {

// Puts a new element in front of the list; returns null when memory has run out.
template <class Element, class... Key>
Element* push(std::atomic<Element*>& list, Key... key) noexcept {
  auto* const element = new (std::nothrow) Element(key...);
  if (element == nullptr) return nullptr;
  element->next = list.load(std::memory_order_relaxed);  // order: relaxed  the thread's own
  list.store(element,
             std::memory_order_release);  // order: release  pairs with for_each/acquire (C1)
  return element;
}

template <class Element>
void free_all(std::atomic<Element*>& list) noexcept {
  // order: relaxed  no other thread uses it any longer
  for (Element* element = list.load(std::memory_order_relaxed); element != nullptr;)
    delete std::exchange(element, element->next);
}

// These have no reader: several threads may change them at the same time.
constinit handler_count lost_handler(nullptr, nullptr);
constinit class_count lost_class(nullptr);
constinit edge_count lost_edge(nullptr, nullptr, nullptr);

}  // namespace

// No handler is null.
thread_counts::thread_counts() noexcept : worker_(base::worker_number) {
  places_.fill({&lost_handler});
}
thread_counts::~thread_counts() {
  // order: relaxed  no other thread uses it any longer
  for (handler_count* handler = handlers_.load(std::memory_order_relaxed); handler;
       handler = handler->next)
    free_all(handler->spans);
  free_all(handlers_);
  free_all(classes_);
  free_all(edges_);
}

span_count* handler_count::of_span(const char* name) noexcept {
  std::size_t count = 0;
  // order: relaxed  the thread's own
  for (span_count* span = spans.load(std::memory_order_relaxed); span; span = span->next, ++count) {
    if (span->name == name) return span;
  }
  return count < names_max ? push(spans, name) : nullptr;
}

TROUPE_NOINLINE handler_count& thread_counts::find(const cell_type& type,
                                                   message::handler method) noexcept {
  TROUPE_INVARIANT(worker_ == base::worker_number, "C2");
  // order: relaxed  the thread's own
  handler_count* handler = handlers_.load(std::memory_order_relaxed);
  while (handler != nullptr && (handler->method != method || handler->type != &type))
    handler = handler->next;
  if (handler == nullptr) handler = push(handlers_, &type, method);
  if (handler == nullptr) return lost_handler;
  place_of(method).recent = handler;
  return *handler;
}

class_count& thread_counts::of_class(const cell_type& type) noexcept {
  if (recent_class_ != nullptr && recent_class_->type == &type) [[likely]]
    return *recent_class_;
  TROUPE_INVARIANT(worker_ == base::worker_number, "C2");
  // order: relaxed  the thread's own
  class_count* counted_class = classes_.load(std::memory_order_relaxed);
  while (counted_class != nullptr && counted_class->type != &type)
    counted_class = counted_class->next;
  if (counted_class == nullptr) counted_class = push(classes_, &type);
  if (counted_class == nullptr) return lost_class;
  return *(recent_class_ = counted_class);
}

edge_count& thread_counts::of_edge(const cell_type* from, const cell_type& to,
                                   message::handler method) noexcept {
  TROUPE_INVARIANT(worker_ == base::worker_number, "C2");
  // order: relaxed  the thread's own
  edge_count* edge = edges_.load(std::memory_order_relaxed);
  while (edge != nullptr &&
         (edge->method != method || edge->sender != from || edge->receiver != &to))
    edge = edge->next;
  if (edge == nullptr) edge = push(edges_, from, &to, method);
  return edge == nullptr ? lost_edge : *edge;
}

sampled_part::sampled_part(handler_count& handler, observe::tally& which) noexcept
    : handler_(handler),
      stands_for_(which.stands_for()),
      sends_(stands_for_),
      began_(observe::now_ticks()) {
  handler_.stride.taken(began_);
  which.next(observe::random_gap(handler_.stride.get()));
}
sampled_part::~sampled_part() { handler_.add_busy(observe::now_ticks() - began_, stands_for_); }

}  // namespace troupe::actor
