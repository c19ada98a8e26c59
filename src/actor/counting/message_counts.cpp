#include "actor/counting/message_counts.hpp"

#include <new>
#include <utility>

#include "actor/mailbox/watched_message.hpp"
#include "base/thread_name.hpp"

namespace troupe::actor {
namespace {

constinit std::atomic<std::uint64_t> made{0};

// Puts a new element in front of the list; returns null when memory has run out.
template <class Element, class... Key>
Element* push(std::atomic<Element*>& list, Key... key) noexcept {
  auto* const one = new (std::nothrow) Element(key...);
  if (one == nullptr) return nullptr;
  one->next = list.load(std::memory_order_relaxed);  // order: relaxed  the thread's own
  list.store(one, std::memory_order_release);  // order: release  pairs with for_each/acquire (C1)
  return one;
}

template <class Element>
void free_all(std::atomic<Element*>& list) noexcept {
  // order: relaxed  no other thread uses it any longer
  for (Element* one = list.load(std::memory_order_relaxed); one != nullptr;)
    delete std::exchange(one, one->next);
}

// Nobody reads these: several threads may change them at the same time.
constinit handler_count lost_handler(nullptr, nullptr);
constinit class_count lost_class(nullptr);
constinit edge_count lost_edge(nullptr, nullptr, nullptr);

}  // namespace

// No handler is null.
thread_counts::thread_counts() noexcept : worker_(base::worker_number) {
  recent_.fill(&lost_handler);
}
thread_counts::~thread_counts() {
  free_all(handlers_);
  free_all(classes_);
  free_all(edges_);
}

TROUPE_NOINLINE handler_count& thread_counts::find(const cell_type& type,
                                                   message::handler method) noexcept {
  // order: relaxed  the thread's own
  handler_count* one = handlers_.load(std::memory_order_relaxed);
  while (one != nullptr && (one->method != method || one->type != &type)) one = one->next;
  if (one == nullptr) one = push(handlers_, &type, method);
  if (one == nullptr) return lost_handler;
  recent_[place_of(method)] = one;
  return *one;
}

TROUPE_NOINLINE handler_count& thread_counts::find(const cell_type& type,
                                                   const message& mail) noexcept {
  return of(type, as_sent(mail).act);
}

class_count& thread_counts::of_class(const cell_type& type) noexcept {
  if (recent_class_ != nullptr && recent_class_->type == &type) [[likely]]
    return *recent_class_;
  // order: relaxed  the thread's own
  class_count* one = classes_.load(std::memory_order_relaxed);
  while (one != nullptr && one->type != &type) one = one->next;
  if (one == nullptr) one = push(classes_, &type);
  if (one == nullptr) return lost_class;
  return *(recent_class_ = one);
}

edge_count& thread_counts::of_edge(const cell_type* from, const cell_type& to,
                                   message::handler method) noexcept {
  // order: relaxed  the thread's own
  edge_count* one = edges_.load(std::memory_order_relaxed);
  while (one != nullptr && (one->method != method || one->from != from || one->to != &to))
    one = one->next;
  if (one == nullptr) one = push(edges_, from, &to, method);
  return one == nullptr ? lost_edge : *one;
}

constinit thread_local send_sampler send_sampler::of_thread{};

TROUPE_NOINLINE std::uint64_t send_sampler::take(std::uint64_t now_ticks) noexcept {
  const std::uint64_t stands_for = stride_.get();
  stride_.taken(now_ticks);
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  left_ = (stride_.get() - 1) / 2 + random_ % stride_.get();
  return stands_for;
}

constinit thread_local message_counts::last_used message_counts::of_thread{};

// order: relaxed  only unequal
message_counts::message_counts() noexcept
    : number_(made.fetch_add(1, std::memory_order_relaxed) + 1) {}

// A thread that has ended may leave its id, and with it its counts, to another one.
TROUPE_NOINLINE thread_counts* message_counts::find_here() noexcept {
  const std::thread::id self = std::this_thread::get_id();
  std::lock_guard lock(mutex_);
  thread_counts* own = nullptr;
  for (const one_thread& one : threads_) {
    if (one.thread == self) own = one.counts.get();
  }
  try {
    if (own == nullptr) {
      threads_.push_back({self, std::make_unique<thread_counts>()});
      own = threads_.back().counts.get();
    }
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  of_thread = {number_, own};
  return own;
}

}  // namespace troupe::actor
