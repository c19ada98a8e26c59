// The floor's "runtime": the cost of a message on one core when nothing but the queue itself is
// paid.
//
// There is one thread, no stealing, no wake-ups, no errors, no counted references. Yet the mailbox
// is a real one: any thread could push to it (a Vyukov queue), so a message costs one atomic
// exchange, and a drained mailbox one compare-and-swap. Messages come from a free list, and the run
// queue is first come, first served. A full runtime can come near these figures, but can hardly be
// below them on one core.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace floor_runtime {

struct actor;

struct message {
  std::atomic<message*> next;
  actor* from;
  std::uint64_t number;
  std::uint32_t kind;
};

// ---- messages ----

// message_pool: blocks of one size, carved from slabs and kept on a list when freed.
class message_pool {
 public:
  message* take() {
    if (message* m = free_; m != nullptr) {
      // order: relaxed  the list belongs to the one thread
      free_ = m->next.load(std::memory_order_relaxed);
      return m;
    }
    if (slab_ == slab_end_) grow();
    return new (slab_++) message;
  }

  void give_back(message* m) {
    // order: relaxed  the list belongs to the one thread
    m->next.store(free_, std::memory_order_relaxed);
    free_ = m;
  }

 private:
  void grow() {
    constexpr std::size_t slab_messages = 32'768;  // 1 MiB
    slab_ = static_cast<message*>(std::malloc(slab_messages * sizeof(message)));
    if (slab_ == nullptr) std::abort();
    slab_end_ = slab_ + slab_messages;
  }

  message* free_ = nullptr;
  message* slab_ = nullptr;
  message* slab_end_ = nullptr;
};

inline message_pool messages;

// ---- mailbox ----

// mailbox: a list of messages, oldest first. Its first element is one that is already handled.
// Invariants
//   F1  `newest_` is the last message pushed. Its lowest bit says that the actor is idle, that is,
//       neither running nor queued.
//   F2  the thread whose push turns the bit off must put the actor on the run queue.
//   F3  `handled_` is the message handled last, or a blank one. It stays in the list until the next
//       one is taken, so the list is never empty, and a push touches one word only.
class mailbox {
 public:
  mailbox() : handled_(messages.take()), newest_(idle(handled_)) {
    // order: relaxed  no other thread knows the mailbox yet
    handled_->next.store(nullptr, std::memory_order_relaxed);
  }

  ~mailbox() { messages.give_back(handled_); }
  mailbox(const mailbox&) = delete;

  // Returns whether the actor was idle (F2). Any thread may call it.
  bool push(message* m) {
    // order: relaxed  published by the exchange
    m->next.store(nullptr, std::memory_order_relaxed);
    // order: acq_rel  orders pushers among each other; pairs with try_idle
    const std::uintptr_t before =
        newest_.exchange(reinterpret_cast<std::uintptr_t>(m), std::memory_order_acq_rel);
    // order: release  publishes *m; pairs with take/acquire
    reinterpret_cast<message*>(before & ~idle_bit)->next.store(m, std::memory_order_release);
    return (before & idle_bit) != 0;
  }

  // Returns the oldest message that is not handled yet, or null. It belongs to the mailbox until
  // the next call.
  message* take() {
    // order: acquire  sees *m; pairs with push/release
    message* m = handled_->next.load(std::memory_order_acquire);
    if (m != nullptr) {
      messages.give_back(handled_);
      handled_ = m;
    }
    return m;
  }

  // Ends the actor's turn; false if a message has come in the meantime.
  bool try_idle() {
    auto expected = reinterpret_cast<std::uintptr_t>(handled_);
    // order: acq_rel  hands the actor's state to the thread that schedules it next; pairs with push
    return newest_.compare_exchange_strong(expected, idle(handled_), std::memory_order_acq_rel,
                                           std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t idle_bit = 1;
  static std::uintptr_t idle(message* m) { return reinterpret_cast<std::uintptr_t>(m) | idle_bit; }

  message* handled_;
  std::atomic<std::uintptr_t> newest_;
};

// ---- actors and their loop ----

struct actor {
  virtual void handle(const message& m) = 0;

  mailbox mail;
  actor* next_runnable = nullptr;

 protected:
  ~actor() = default;  // no code deletes an actor through this class
};

class run_queue {
 public:
  void push(actor* a) {
    a->next_runnable = nullptr;
    if (last_ != nullptr) {
      last_->next_runnable = a;
    } else {
      first_ = a;
    }
    last_ = a;
  }

  actor* pop() {
    actor* a = first_;
    if (a != nullptr) {
      first_ = a->next_runnable;
      if (first_ == nullptr) last_ = nullptr;
    }
    return a;
  }

 private:
  actor* first_ = nullptr;
  actor* last_ = nullptr;
};

inline run_queue runnables;

inline void send(actor* to, actor* from, std::uint32_t kind, std::uint64_t number = 0) {
  message* m = messages.take();
  m->from = from;
  m->number = number;
  m->kind = kind;
  if (to->mail.push(m)) runnables.push(to);
}

// An actor that has handled its last message sets this in its handler. It is destroyed when the
// handler has returned.
inline actor* leaving = nullptr;
using destroyer = void (*)(actor*);
inline destroyer destroy_leaving = nullptr;

template <class Actor>
void leave(Actor* self) {
  leaving = self;
  destroy_leaving = [](actor* a) { delete static_cast<Actor*>(a); };
}

// Runs until no actor has a message. A turn handles up to 100 messages, as a runtime's would.
// Messages that a sender sends to itself fall into the same turn. So in counting the sender runs
// ahead of its counter, and the figure includes the cache misses of the backlog. If a turn handled
// only the messages that were there when it began, counting would be three times faster, and
// fork_join_throughput would take half as long again.
inline void run() {
  constexpr int turn_messages_max = 100;
  while (actor* a = runnables.pop()) {
    int handled = 0;
    for (;;) {
      if (message* m = a->mail.take(); m != nullptr) {
        a->handle(*m);
        if (leaving != nullptr) {
          leaving = nullptr;
          destroy_leaving(a);
          break;
        }
        if (++handled == turn_messages_max) {
          runnables.push(a);
          break;
        }
      } else if (a->mail.try_idle()) {
        break;
      }
    }
  }
}

}  // namespace floor_runtime
