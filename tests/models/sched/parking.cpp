// The mailbox word of an actor with calls that wait. The actor parks, and the urgent mail that its
// calls wait for wakes it. Any mail wakes a reentrant actor.
//
// The actor starts as active and suspended, and waits for a number of resumptions, each from a
// sender of its own. Other senders send it ordinary mail, which it handles when all resumptions
// have come. The sender that wakes the actor runs it, so it passes from thread to thread. A
// reentrant actor handles ordinary mail at once, and its resumptions come only after that. Another
// thread may seize the parked actor to look at it, and then lets it go.
// Checks M1 to M5: two threads never touch the actor's own state at the same time, an actor is
// woken by one thread only, and at the end the actor is inactive and has handled everything once,
// the mail of each sender in order.
//
// mutation: park_relaxed
// mutation: park_unchecked
// mutation: append_unpublished
// mutation: append_without_acquire
// mutation: append_always_unpublished
// mutation: append_always_without_acquire
// mutation: urgent_keeps_parked
// mutation: ordinary_takes_parked
// mutation: fallback_wakes_nobody
// mutation: reentrant_sleeps_on
// mutation: reentrant_is_woken_by_two
// mutation: seize_without_acquire
// mutation: let_go_relaxed
// mutation: let_go_unchecked
// mutation: let_go_wakes_nobody
#include "models/relacy_atomics.hpp"

#include "actor/mailbox/mailbox.hpp"
#include "actor/mailbox/sending.hpp"
#include "actor/waits/hold_parked.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uintptr_t>;

// A link that knows whether its message still exists: a thread must be done with the link before
// the message is freed.
struct message_link : models::atomic<std::uintptr_t> {
  std::uintptr_t load(std::memory_order order, models::place at = models::place::current()) {
    RL_ASSERT(there);
    return models::atomic<std::uintptr_t>::load(order, at);
  }
  void store(std::uintptr_t to, std::memory_order order,
             models::place at = models::place::current()) {
    RL_ASSERT(there);
    models::atomic<std::uintptr_t>::store(to, order, at);
  }
  models::guarded<bool> there{true};
};

struct alignas(16) message {
  message_link next;
  models::guarded<unsigned> from{0}, number{0};
  unsigned handled = 0;  // the model's own, not checked for races
};

struct alignas(16) activation {
  models::guarded<message*> oldest{nullptr}, newest{nullptr};
  void append(message& mail) {
    mail.next.store(0, std::memory_order_relaxed);
    if (message* last = newest) {
      last->next.store(reinterpret_cast<std::uintptr_t>(&mail), std::memory_order_relaxed);
    } else {
      oldest = &mail;
    }
    newest = &mail;
  }
  void clear() { oldest = newest = nullptr; }
};

using shipped = actor::mailbox_word<message, activation, word, models::fenced_atomics>;

// The shipped class, with the mutations that do not concern memory orders.
struct mailbox : shipped {
  explicit mailbox(word& in) : shipped(in), word_(in) {}
  bool park(activation& active) {
    if (!models::mutated("park_unchecked")) return shipped::park(active);
    if (has_mail(active)) return false;
    word_.store(tagged(active) | parked_tag, std::memory_order_release);
    return true;
  }
  bool append(std::uintptr_t seen, message& mail, bool urgent, bool wakes) {
    const bool keeps_parked =
        models::mutated(urgent ? "urgent_keeps_parked" : "reentrant_is_woken_by_two");
    if (!keeps_parked && !models::mutated("ordinary_takes_parked"))
      return shipped::append(seen, mail, urgent, wakes);
    mail.next.store(seen, std::memory_order_relaxed);
    std::uintptr_t link = reinterpret_cast<std::uintptr_t>(&mail) | (urgent ? urgent_tag : 0);
    if (keeps_parked) link |= seen & parked_tag;
    return word_.compare_exchange_strong(seen, link, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
  }
  std::uintptr_t append_always(message& mail) {
    const std::uintptr_t seen = shipped::append_always(mail);
    return models::mutated("fallback_wakes_nobody") ? seen & ~parked_tag : seen;
  }
  bool let_go(std::uintptr_t seen) {
    if (!models::mutated("let_go_unchecked")) return shipped::let_go(seen);
    word_.store(seen, std::memory_order_release);
    return true;
  }
  word& word_;
};

template <unsigned Resumptions, unsigned Senders, unsigned MailsEach, int Retries,
          unsigned Looks = 0, bool Reentrant = false>
struct parking_model
    : rl::test_suite<parking_model<Resumptions, Senders, MailsEach, Retries, Looks, Reentrant>,
                     1 + Resumptions + Senders + (Looks != 0 ? 1 : 0)> {
  word word_{0};
  message resumptions_[Resumptions], mails_[Senders][MailsEach];
  activation first_, activations_[Senders];
  // The actor's own state.
  models::guarded<unsigned> awaited_{Resumptions}, looked_{0}, next_number_[Senders];
  models::guarded<activation*> parked_as_{nullptr};
  unsigned running_ = 1, handled_ = 0;  // the model's own, not checked for races
  models::latch all_handled_;

  struct side {
    parking_model& model;
    activation* own;
    void refuse(message&) { RL_ASSERT(false); }
    bool closing() { return false; }
    bool wakes_always() { return Reentrant && !models::mutated("reentrant_sleeps_on"); }
    bool enter_gate() { return true; }
    void leave() {}
    activation& activate(message& mail) {
      own->append(mail);
      return *own;
    }
    void discard(activation& made) { made.clear(); }
    void wake(activation& made) {
      RL_ASSERT(++model.running_ == 1);
      model.run(made);
    }
    void wake_hint(std::uintptr_t) {}
  };

  void handle(message& mail) {
    RL_ASSERT(++mail.handled == 1);
    RL_ASSERT(next_number_[mail.from] == mail.number);
    next_number_[mail.from] = mail.number + 1;
    mail.next.there = false;
    if (++handled_ == Senders * MailsEach) all_handled_.open();
  }

  void handle_list(activation& active) {
    for (message* mail = active.oldest; mail != nullptr;) {
      auto* next = reinterpret_cast<message*>(mail->next.load(std::memory_order_relaxed));
      handle(*mail);
      mail = next;
    }
    active.clear();
  }

  void collect(mailbox& box, activation& active) {
    message* oldest = nullptr;
    box.collect(active, [&](message& mail, bool urgent) {
      if (urgent) {
        RL_ASSERT(++mail.handled == 1 && awaited_ != 0);
        awaited_ = awaited_ - 1;
        mail.next.there = false;
      } else {
        mail.next.store(reinterpret_cast<std::uintptr_t>(oldest), std::memory_order_relaxed);
        oldest = &mail;
      }
    });
    while (oldest != nullptr) {
      message& mail = *oldest;
      oldest = reinterpret_cast<message*>(mail.next.load(std::memory_order_relaxed));
      active.append(mail);
    }
  }

  void run(activation& active) {
    mailbox box(word_);
    for (;;) {
      looked_ = looked_ + 1;
      if (Reentrant || awaited_ == 0) handle_list(active);
      parked_as_ = &active;
      if (awaited_ == 0 ? box.rest(active) : box.park(active)) break;
      collect(box, active);
    }
    --running_;  // in the same step as the call before
  }

  // Takes the parked actor over, without mail.
  void look() {
    const auto look_at = [this](activation&) {
      RL_ASSERT(++running_ == 1);
      RL_ASSERT(awaited_ != 0);
      looked_ = looked_ + 1;
      --running_;
    };
    const auto parked_as = [this]() -> activation& {
      return *static_cast<activation*>(parked_as_);
    };
    const auto wake = [this](activation& active) {
      if (models::mutated("let_go_wakes_nobody")) return;
      RL_ASSERT(++running_ == 1);
      run(active);
    };
    for (unsigned i = 0; i < Looks; ++i)
      static_cast<void>(actor::hold_parked(mailbox(word_), parked_as, look_at, wake));
  }

  void before() { word_.store(mailbox::tagged(first_), std::memory_order_relaxed); }

  void thread(unsigned index) {
    if (index == 0) return run(first_);
    if (--index < Resumptions) {
      side mine{*this, nullptr};
      if (Reentrant) all_handled_.wait();
      return actor::send_from_afar<Retries>(mailbox(word_), resumptions_[index], true, mine);
    }
    index -= Resumptions;
    if (index == Senders) return look();
    side mine{*this, &activations_[index]};
    for (unsigned i = 0; i < MailsEach; ++i) {
      message& mail = mails_[index][i];
      mail.from = index;
      mail.number = i;
      actor::send_from_afar<Retries>(mailbox(word_), mail, false, mine);
    }
  }

  void after() {
    RL_ASSERT(mailbox(word_).read() == mailbox::inactive);
    RL_ASSERT(awaited_ == 0 && running_ == 0);
    for (auto& number : next_number_) RL_ASSERT(number == MailsEach);
  }
};

}  // namespace

int main() {
  models::weaken_if("park_relaxed", access::compare_exchange, "::park(");
  models::weaken_if("append_unpublished", access::compare_exchange, "::append(",
                    std::memory_order_release);
  models::weaken_if("append_without_acquire", access::compare_exchange, "::append(",
                    std::memory_order_acquire);
  models::weaken_if("append_always_unpublished", access::exchange, "::append_always(",
                    std::memory_order_release);
  models::weaken_if("seize_without_acquire", access::compare_exchange, "::seize(",
                    std::memory_order_acquire);
  models::weaken_if("let_go_relaxed", access::compare_exchange, "::let_go(");
  models::weaken_if("append_always_without_acquire", access::exchange, "::append_always(",
                    std::memory_order_acquire);
  // The numbers: resumptions, senders, messages of each, attempts before the exchange that cannot
  // fail.
  const bool holds =
      models::check<parking_model<1, 1, 2, 2>>(models::deep(4)) &&
      models::check<parking_model<1, 1, 2, 1>>(models::deep(4)) &&
      models::check<parking_model<1, 1, 2, 0>>(models::deep(4)) &&
      models::check<parking_model<2, 1, 1, 1>>(2) && models::check<parking_model<2, 1, 1, 0>>(2) &&
      models::check<parking_model<1, 2, 1, 1>>(2) && models::check<parking_model<1, 2, 1, 0>>(2) &&
      models::check<parking_model<1, 1, 1, 1, 1>>(2) &&
      models::check<parking_model<1, 1, 1, 0, 1>>(2) &&
      models::check<parking_model<2, 1, 1, 1, 2>>(models::deep(2)) &&
      models::check<parking_model<1, 1, 2, 1, 0, true>>(2) &&
      models::check<parking_model<1, 2, 1, 1, 0, true>>(2) &&
      models::check<parking_model<1, 2, 1, 0, 0, true>>(2) &&
      models::check<parking_model<1, 1, 1, 1, 1, true>>(2);
  return holds ? 0 : 1;
}
