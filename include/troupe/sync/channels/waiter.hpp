// waiter and waiter_list: the parties that wait for something, in order. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/base/intrusive_list.hpp"

namespace troupe::sync {

// One party that waits: a coroutine or a thread. It lies in that party's own memory. While a list
// holds it, the mutex of that list guards it.
struct waiter {
  waiter() noexcept {}
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  bool listed() const noexcept { return is_listed; }

  // Ends the wait. Called once, by the thread that took the waiter out of its list, without that
  // list's mutex. The caller must not touch the waiter afterwards.
  void (*wake)(waiter&) noexcept;  // set before it enters a list
  base::list_link<waiter> link;
  bool is_listed = false;  // in a waiter_list
};

// Waiters, oldest first. Its owner's mutex guards it.
class waiter_list {
 public:
  waiter_list() = default;
  waiter_list(const waiter_list&) = delete;
  waiter_list& operator=(const waiter_list&) = delete;

  bool empty() const noexcept { return all_.empty(); }
  waiter* first() const noexcept { return all_.first(); }
  void push(waiter& added) noexcept {
    all_.push_back(added);
    added.is_listed = true;
  }
  // Returns the oldest, which is in the list no longer; null if the list is empty.
  waiter* pop() noexcept {
    waiter* const oldest = first();
    if (oldest != nullptr) remove(*oldest);
    return oldest;
  }
  void remove(waiter& removed) noexcept {
    all_.remove(removed);
    removed.is_listed = false;
  }
  // The one behind it; null behind the last.
  static waiter* next(const waiter& party) noexcept { return all_waiters::next(party); }
  // Removes the waiter if this list holds it still. Returns whether it did.
  bool withdraw(waiter& party) noexcept {
    if (!party.listed()) return false;
    remove(party);
    return true;
  }

 private:
  using all_waiters = base::intrusive_list<waiter, &waiter::link>;
  all_waiters all_;
};

// Waiters whose wait is decided, oldest first, to be woken without the mutex. A list holds them no
// longer: their own withdraw() fails.
class woken_waiters {
 public:
  woken_waiters() = default;
  woken_waiters(const woken_waiters&) = delete;
  woken_waiters& operator=(const woken_waiters&) = delete;

  // The waiter is in no list.
  void push(waiter& woken) noexcept { all_.push_back(woken); }
  void push_all(waiter_list& from) noexcept {
    while (waiter* const woken = from.pop()) push(*woken);
  }
  void wake() noexcept {
    // It leaves the list first: a woken waiter may be gone.
    while (waiter* const woken = all_.pop_front()) woken->wake(*woken);
  }

 private:
  base::intrusive_list<waiter, &waiter::link> all_;
};

}  // namespace troupe::sync
