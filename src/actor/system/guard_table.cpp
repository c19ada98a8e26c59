#include "actor/system/guard_table.hpp"

#include <utility>

#include "base/invariant.hpp"

namespace troupe::actor {

conditional_message* guard_table::walk::take() noexcept {
  TROUPE_INVARIANT(next == nullptr || (oldest != nullptr && next->actor == oldest->actor), "G1");
  if (next == nullptr) {
    if (oldest == nullptr) return nullptr;
    next = oldest = oldest->next_in_table;
    if (next == nullptr) return nullptr;
  }
  return std::exchange(next, next->next_waiting);
}

void guard_table::walk::leaves(const conditional_message& message) noexcept {
  if (next == &message) next = message.next_waiting;
  if (oldest != &message) return;
  oldest = message.next_waiting != nullptr ? message.next_waiting : message.next_in_table;
  // the actor has no more
  if (message.next_waiting == nullptr) next = oldest;
}

void guard_table::add(cell& actor, conditional_message& message) noexcept {
  // order: relaxed (all)  a count and numbers; the tables' locks publish the messages
  waiting_.fetch_add(1, std::memory_order_relaxed);
  if (message.number == 0) message.number = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
  message.actor = &actor;
  table_.with(actor, [&](conditional_message*& head) {
    conditional_message* const first = head;
    if (first == nullptr || message.number < first->number) {
      message.next_waiting = first;
      message.newest = first == nullptr ? &message : first->newest;
      message.next_in_table = first == nullptr ? nullptr : first->next_in_table;
      head = &message;
      walk& on = walks_[table::bucket_of(actor)];
      if (first != nullptr && on.oldest == first) on.oldest = &message;
      return;
    }
    conditional_message* behind = first->newest->number < message.number ? first->newest : first;
    while (behind->next_waiting != nullptr && behind->next_waiting->number < message.number)
      behind = behind->next_waiting;
    message.next_waiting = behind->next_waiting;
    behind->next_waiting = &message;
    if (first->newest == behind) first->newest = &message;
  });
}

void guard_table::remove(cell& actor, conditional_message& message) noexcept {
  // order: relaxed  a count
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  table_.with(actor, [&](conditional_message*& head) {
    conditional_message* const first = head;
    walk& on = walks_[table::bucket_of(actor)];
    on.leaves(message);
    TROUPE_INVARIANT(on.next != &message && on.oldest != &message, "G1");
    if (first == &message) {
      if (conditional_message* next = message.next_waiting) {
        next->newest = message.newest;
        next->next_in_table = message.next_in_table;
        head = next;
      } else {
        head = message.next_in_table;
      }
      return;
    }
    conditional_message* before = first;
    while (before->next_waiting != &message) before = before->next_waiting;
    before->next_waiting = message.next_waiting;
    if (first->newest == &message) first->newest = before;
  });
}

conditional_message* guard_table::oldest_of(cell& actor) noexcept {
  return table_.with(actor, [](conditional_message* head) { return head; });
}

}  // namespace troupe::actor
