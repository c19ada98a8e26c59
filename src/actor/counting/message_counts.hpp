// message_counts: the work of one runtime's actors, by class and handler, while it is observed.
//
// Each thread counts for itself, without a locked instruction; a reader adds the threads up. Counts
// are exact (observe/counting/tally.hpp). Times come from samples, whose distance follows their
// rate (observe/sample_stride.hpp) and is random, so that a periodic program does not hide a
// handler; senders come from the messages that samples send (observe/counting/sampled_sends.hpp).
//
// Invariants
//   C1  a count is never freed before its runtime's state: readers follow the lists freely.
//   C2  only its thread changes the members of a thread_counts; `next` of an element never changes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/counting/by_thread.hpp"
#include "observe/counting/histogram.hpp"
#include "observe/counting/sampled_sends.hpp"
#include "observe/counting/tally.hpp"
#include "observe/sample_stride.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::actor {

// The time that one handler spent in the trace_spans and with_spans of one name.
struct span_count {
  explicit constexpr span_count(const char* span_name) noexcept : name(span_name) {}
  const char* const name;
  observe::counter spans;
  observe::counter ticks;
  span_count* next = nullptr;
};

// The counts of one handler of one class.
struct handler_count {
  constexpr handler_count(const cell_type* counted_type, message::handler which) noexcept
      : type(counted_type), method(which) {}
  // A sample, which represents `stands_for` messages or resumptions.
  void add_busy(std::uint64_t ticks, std::uint64_t stands_for) noexcept {
    busy_samples.add(1);
    busy.add(ticks, stands_for);
    busy_ticks.add(ticks * stands_for);
  }
  void add_wait(std::uint64_t ticks, std::uint64_t stands_for) noexcept {
    wait_samples.add(1);
    waited.add(ticks, stands_for);
  }
  // Null if memory has run out, or if the handler already has names_max names.
  span_count* of_span(const char* name) noexcept;
  // Thread: any.
  template <class Look>
  void for_each_span(Look look) const {
    // order: acquire  sees the complete element; pairs with push/release
    for (const span_count* span = spans.load(std::memory_order_acquire); span; span = span->next)
      look(*span);
  }
  static constexpr std::size_t names_max = 64;

  const cell_type* const type;
  const message::handler method;
  observe::tally messages;        // handled
  observe::tally resumed;         // resumptions of its coroutines
  observe::sample_stride stride;  // of messages and resumptions that are timed
  observe::counter failures;
  observe::counter busy_samples, wait_samples;
  observe::counter busy_ticks;  // of all in `busy`
  observe::histogram busy;      // ticks that one message or one resumption took
  observe::histogram waited;    // ticks that a message lay in the mailbox
  std::atomic<span_count*> spans{nullptr};
  handler_count* next = nullptr;
};

// The counts of one class.
struct class_count {
  explicit constexpr class_count(const cell_type* counted_type) noexcept : type(counted_type) {}
  const cell_type* const type;
  observe::counter spawned, ended;
  observe::counter suspended, resumed;  // turns whose suspension began, and ended
  class_count* next = nullptr;
};

// Messages from one class, or from outside of all actors (null), to a handler of a class.
struct edge_count {
  constexpr edge_count(const cell_type* from, const cell_type* to, message::handler which) noexcept
      : sender(from), receiver(to), method(which) {}
  const cell_type* const sender;
  const cell_type* const receiver;
  const message::handler method;
  observe::counter messages;  // an estimate: the sum of the samples' weights
  edge_count* next = nullptr;
};

// A message or a resumption that is a sample: it is timed, and the messages that it sends are
// samples as well.
class sampled_part {
 public:
  // Call it when `which` has a sample due.
  sampled_part(handler_count& handler, observe::tally& which) noexcept;
  sampled_part(const sampled_part&) = delete;
  sampled_part& operator=(const sampled_part&) = delete;
  ~sampled_part();

 private:
  handler_count& handler_;
  const std::uint64_t stands_for_;
  const observe::sampled_sends sends_;
  std::uint64_t began_;
};

// The counts of one thread.
class thread_counts {
 public:
  thread_counts() noexcept;
  thread_counts(const thread_counts&) = delete;
  thread_counts& operator=(const thread_counts&) = delete;
  ~thread_counts();

  // The handler that was used last among those whose functions have the same place as this one.
  TROUPE_INLINE handler_count& recent(message::handler method) noexcept {
    return *place_of(method).recent;
  }
  // When memory has run out, these return an element without readers. For a message see count_of
  // (mailbox/watched_message.hpp).
  TROUPE_INLINE handler_count& of(const cell_type& type, message::handler method) noexcept {
    handler_count& last = recent(method);
    if (last.method == method && last.type == &type) [[likely]]
      return last;
    return find(type, method);
  }
  class_count& of_class(const cell_type& type) noexcept;
  edge_count& of_edge(const cell_type* from, const cell_type& to, message::handler method) noexcept;

  // Thread: any.
  // The number of the worker that counts here, from 1 on; 0: another thread.
  unsigned worker() const noexcept { return worker_; }
  template <class Look>
  void for_each_handler(Look look) const {
    // order: acquire (all)  sees the complete element; pairs with find/release
    for (const handler_count* handler = handlers_.load(std::memory_order_acquire); handler;
         handler = handler->next)
      look(*handler);
  }
  template <class Look>
  void for_each_class(Look look) const {
    // order: acquire  as above
    for (const class_count* counted_class = classes_.load(std::memory_order_acquire); counted_class;
         counted_class = counted_class->next)
      look(*counted_class);
  }
  template <class Look>
  void for_each_edge(Look look) const {
    // order: acquire  as above
    for (const edge_count* edge = edges_.load(std::memory_order_acquire); edge; edge = edge->next)
      look(*edge);
  }

 private:
  // The most recently used of the handlers whose functions have this place. As large as the
  // functions' alignment, so that a handler's place needs no shift.
  struct alignas(16) place {
    handler_count* recent;
  };
  static constexpr std::size_t places = 256;
  TROUPE_INLINE place& place_of(message::handler method) noexcept {
    return places_[reinterpret_cast<std::uintptr_t>(method) / sizeof(place) % places];
  }
  // Cold, so that compilers lay the common path out straight.
  [[gnu::cold]] handler_count& find(const cell_type& type, message::handler method) noexcept;

  const unsigned worker_;
  std::array<place, places> places_;
  class_count* recent_class_ = nullptr;
  std::atomic<handler_count*> handlers_{nullptr};
  std::atomic<class_count*> classes_{nullptr};
  std::atomic<edge_count*> edges_{nullptr};
};

// The counts of one runtime.
class message_counts : public observe::by_thread<thread_counts> {};

}  // namespace troupe::actor
