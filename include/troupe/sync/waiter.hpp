// waiter and waiter_list: the parties that wait for something, in order. For the library's own use.
#pragma once

namespace troupe::sync {

// One party that waits: a coroutine or a thread. It lies in that party's own memory. While a list
// holds it, the mutex of that list guards it.
struct waiter {
  waiter() noexcept {}
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  bool listed() const noexcept { return link != nullptr; }

  // Ends the wait. Called once, by the thread that took the waiter out of its list, without that
  // list's mutex. The caller must not touch the waiter afterwards.
  void (*wake)(waiter&) noexcept;  // set before it enters a list, as is the next one
  waiter* behind;
  waiter** link = nullptr;  // what points to this waiter; null if no list holds it
};

// Waiters, oldest first. Its owner's mutex guards it.
class waiter_list {
 public:
  waiter_list() = default;
  waiter_list(const waiter_list&) = delete;
  waiter_list& operator=(const waiter_list&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  waiter* first() const noexcept { return first_; }
  void push(waiter& one) noexcept {
    one.behind = nullptr;
    one.link = end_;
    *end_ = &one;
    end_ = &one.behind;
  }
  // Returns the oldest, which is in the list no longer; null if the list is empty.
  waiter* pop() noexcept {
    waiter* const oldest = first_;
    if (oldest != nullptr) remove(*oldest);
    return oldest;
  }
  void remove(waiter& one) noexcept {
    *one.link = one.behind;
    if (one.behind != nullptr) {
      one.behind->link = one.link;
    } else {
      end_ = one.link;
    }
    one.link = nullptr;
  }
  // Removes the waiter if this list holds it still. Returns whether it did.
  bool withdraw(waiter& one) noexcept {
    if (!one.listed()) return false;
    remove(one);
    return true;
  }

 private:
  waiter* first_ = nullptr;
  waiter** end_ = &first_;
};

// Waiters whose wait is decided, oldest first, to be woken without the mutex. A list holds them no
// longer: their own withdraw() fails.
class woken_waiters {
 public:
  woken_waiters() = default;
  woken_waiters(const woken_waiters&) = delete;
  woken_waiters& operator=(const woken_waiters&) = delete;

  // The waiter is in no list.
  void push(waiter& one) noexcept {
    one.behind = nullptr;
    *end_ = &one;
    end_ = &one.behind;
  }
  void push_all(waiter_list& from) noexcept {
    while (waiter* const one = from.pop()) push(*one);
  }
  void wake() noexcept {
    while (first_ != nullptr) {
      waiter& one = *first_;
      first_ = one.behind;  // read first: a woken waiter may be gone
      one.wake(one);
    }
    end_ = &first_;
  }

 private:
  waiter* first_ = nullptr;
  waiter** end_ = &first_;
};

}  // namespace troupe::sync
