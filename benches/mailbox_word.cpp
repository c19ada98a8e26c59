// mailbox_word: the shipping mailbox word (src/actor/mailbox/mailbox.hpp) beside a one-bit lock in
// the same word.
//
// This is not a row of ./bench. It answers one question, for docs/decisions/mailbox_word.md.
//
//   cmake --preset release -DTROUPE_BENCH=ON
//   cmake --build --preset release --target bench_mailbox_word
//   build/release/benches/bench_mailbox_word [RUNS]
//
// Each line has nanoseconds for one message, as median (least to most) of RUNS runs (default 9),
// with the two words in turn. The last two questions need CPUs 0 and 1. Both words keep the
// sender's order, which is checked, and take their activations from the same pool.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "actor/mailbox/mailbox.hpp"
#include "base/atomics.hpp"
#include "measure.hpp"
#include "memory/stable_pool.hpp"

namespace {

using word_type = std::atomic<std::uintptr_t>;
using troupe::base::std_atomics;

struct message {
  std::atomic<std::uintptr_t> next{0};
  std::uint64_t number = 0;
  unsigned sender = 0;
  std::atomic<bool> in_use{false};  // from the push until the message is handled
};

// What an actor has while it is active. `oldest` and `newest` are a list through `next`.
struct activation {
  message* oldest;
  message* newest;
};

activation& make_activation(message& first) {
  // order: relaxed  the word publishes
  first.next.store(0, std::memory_order_relaxed);
  return *::new (troupe::memory::allocate_stable()) activation{&first, &first};
}

// A box has push(), which returns the activation that the caller must hand to the owner, or null;
// and turn(), which handles all messages, oldest first, until the actor is inactive.

class lock_free_box {
 public:
  activation* push(message& mail) {
    for (;;) {
      box word(word_);
      const std::uintptr_t seen = word.read();
      if (seen != box::inactive) {
        if (word.append(seen, mail, false, false)) return nullptr;
        continue;
      }
      activation& made = make_activation(mail);
      if (word.claim(made)) return &made;
      troupe::memory::deallocate_stable(&made);
    }
  }

  template <class Handle>
  void turn(activation& active, Handle handle) {
    box word(word_);
    handle_list(active.oldest, handle);
    while (!word.rest(active)) {
      message* oldest = nullptr;
      word.collect(active, [&](message& mail, bool) {
        // order: relaxed  the owner's own list
        mail.next.store(reinterpret_cast<std::uintptr_t>(oldest), std::memory_order_relaxed);
        oldest = &mail;
      });
      handle_list(oldest, handle);
    }
    troupe::memory::deallocate_stable(&active);
  }

  template <class Handle>
  static void handle_list(message* at, Handle handle) {
    while (at != nullptr) {
      // order: relaxed  the owner's own list; handle() may give the message away
      auto* next = reinterpret_cast<message*>(at->next.load(std::memory_order_relaxed));
      handle(*at);
      at = next;
    }
  }

 private:
  using box = troupe::actor::mailbox_word<message, activation, word_type>;
  alignas(troupe::base::line_bytes) word_type word_{0};
};

// The word is 0 when inactive, otherwise the activation. Its lowest bit says that a thread works on
// the list.
class locked_box {
 public:
  activation* push(message& mail) {
    activation* made = nullptr;
    for (int spin = 0;; ++spin) {
      // order: relaxed  the exchange below acquires
      std::uintptr_t seen = word_.load(std::memory_order_relaxed);
      if (seen == 0) {
        if (made == nullptr) made = &make_activation(mail);
        // order: acq_rel  publishes the list; takes over from turn/release
        if (word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(made),
                                          std::memory_order_acq_rel, std::memory_order_relaxed)) {
          return made;
        }
      }
      if (seen != 0 && (seen & locked) == 0 && lock(seen)) {
        if (made != nullptr) troupe::memory::deallocate_stable(made);
        append(*reinterpret_cast<activation*>(seen), mail);
        unlock(seen);
        return nullptr;
      }
      std_atomics::wait_a_little(spin);
    }
  }

  template <class Handle>
  void turn(activation& active, Handle handle) {
    const auto self = reinterpret_cast<std::uintptr_t>(&active);
    for (;;) {
      for (int spin = 0; !lock(self); ++spin) std_atomics::wait_a_little(spin);
      message* oldest = active.oldest;
      active.oldest = active.newest = nullptr;
      unlock(oldest == nullptr ? 0 : self);  // nothing is left: inactive
      if (oldest == nullptr) break;
      lock_free_box::handle_list(oldest, handle);
    }
    troupe::memory::deallocate_stable(&active);
  }

 private:
  static constexpr std::uintptr_t locked = 1;

  bool lock(std::uintptr_t unlocked) {
    // order: acquire  sees the list; pairs with unlock
    return word_.compare_exchange_strong(unlocked, unlocked | locked, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  // order: release  publishes the list; pairs with lock
  void unlock(std::uintptr_t to) { word_.store(to, std::memory_order_release); }

  static void append(activation& active, message& mail) {
    // order: relaxed (both)  under the lock
    mail.next.store(0, std::memory_order_relaxed);
    if (active.oldest == nullptr) {
      active.oldest = &mail;
    } else {
      active.newest->next.store(reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_relaxed);
    }
    active.newest = &mail;
  }

  alignas(troupe::base::line_bytes) word_type word_{0};
};

// One actor, up to two senders with messages of their own, and a variable for the activation that
// is to run.
template <class Box>
class scene {
 public:
  static constexpr std::size_t messages = 1024;  // of each sender, used repeatedly

  void send(unsigned sender, std::uint64_t number) {
    message& mail = mail_[sender][number % messages];
    // order: acquire  the handler is done with it; pairs with handled/release
    for (int spin = 0; mail.in_use.load(std::memory_order_acquire); ++spin) {
      if (owner_ == sender) take_turn();
      std_atomics::wait_a_little(spin);
    }
    mail.number = number;
    mail.sender = sender;
    // order: relaxed  the word publishes
    mail.in_use.store(true, std::memory_order_relaxed);
    // order: release  publishes the activation's list to the owner; pairs with take_turn
    if (activation* made = box_.push(mail)) runnable_.store(made, std::memory_order_release);
  }

  void take_turn() {
    // order: acquire  pairs with send/release; there is at most one, because an actor has one
    // activation
    activation* active = runnable_.load(std::memory_order_acquire);
    if (active == nullptr) return;
    // order: relaxed  the next claim comes after the rest in turn()
    runnable_.store(nullptr, std::memory_order_relaxed);
    box_.turn(*active, [this](message& mail) {
      if (mail.number != expected_[mail.sender]++) std::abort();
      ++handled_;
      // order: release  pairs with send/acquire
      mail.in_use.store(false, std::memory_order_release);
    });
  }

  std::uint64_t handled() const { return handled_; }
  void set_owner(unsigned sender) { owner_ = sender; }

 private:
  Box box_;
  alignas(troupe::base::line_bytes) std::atomic<activation*> runnable_{nullptr};
  alignas(troupe::base::line_bytes) std::uint64_t handled_ = 0;
  std::array<std::uint64_t, 2> expected_{};
  unsigned owner_ = 2;  // the sender that also handles messages; 2: none
  alignas(troupe::base::line_bytes) std::array<std::array<message, messages>, 2> mail_;
};

// ---- the questions: nanoseconds a message ----

template <class Box, std::uint64_t Slice>
double one_thread() {
  constexpr std::uint64_t count = 8'000'000;
  auto here = std::make_unique<scene<Box>>();
  const measure::stopwatch watch;
  for (std::uint64_t sent = 0; sent < count;) {
    for (std::uint64_t i = 0; i < Slice; ++i) here->send(0, sent++);
    here->take_turn();
  }
  if (here->handled() != count) std::abort();
  return watch.ns_per(count);
}

// Each sender has its own processor. A third thread runs where the kernel lets it.
template <class Box, bool OneOfThemHandles>
double two_senders() {
  constexpr std::uint64_t count = 4'000'000;  // of each sender
  auto here = std::make_unique<scene<Box>>();
  if (OneOfThemHandles) here->set_owner(0);
  const auto handle_until_all_are = [&here] {
    for (int spin = 0; here->handled() != 2 * count; ++spin) {
      here->take_turn();
      std_atomics::wait_a_little(spin % 200);
    }
  };
  const auto send_all = [&](unsigned sender) {
    measure::pin_this_thread(static_cast<int>(sender));
    for (std::uint64_t i = 0; i < count; ++i) {
      here->send(sender, i);
      if (OneOfThemHandles && sender == 0 && i % 64 == 0) here->take_turn();
    }
    if (OneOfThemHandles && sender == 0) handle_until_all_are();
  };
  const measure::stopwatch watch;
  std::thread first(send_all, 0), second(send_all, 1);
  if (!OneOfThemHandles) handle_until_all_are();
  first.join();
  second.join();
  return watch.ns_per(2 * count);
}

// ---- runs ----

void print(const char* name, std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  std::printf("  %-10s %7.1f (%.1f to %.1f)\n", name, figures[figures.size() / 2], figures.front(),
              figures.back());
}

void compare(const char* question, double (*lock_free)(), double (*locked)(), int runs) {
  std::vector<double> ours, theirs;
  for (int run = 0; run < runs; ++run) {
    ours.push_back(lock_free());
    theirs.push_back(locked());
  }
  std::printf("%s\n", question);
  print("lock-free", std::move(ours));
  print("one bit", std::move(theirs));
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  compare("one thread, one message at a time", one_thread<lock_free_box, 1>,
          one_thread<locked_box, 1>, runs);
  compare("one thread, 64 at a time", one_thread<lock_free_box, 64>, one_thread<locked_box, 64>,
          runs);
  compare("two threads send, one of them handles", two_senders<lock_free_box, true>,
          two_senders<locked_box, true>, runs);
  compare("two threads send, a third handles", two_senders<lock_free_box, false>,
          two_senders<locked_box, false>, runs);
}
