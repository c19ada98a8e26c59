// The mailbox word with the same loop of its senders that ships. A sender that wakes the actor runs
// it, so the actor passes from thread to thread.
// Checks M1 to M4: two threads never touch the actor's own state at the same time, each sees what
// the one before did, no message is lost, handled twice or seen in part, and the messages of each
// sender stay in order. The order is also causal: a sender that has seen another sender's message
// sends after it.
//
// mutation: append_relaxed
// mutation: append_always_relaxed
// mutation: claim_relaxed
// mutation: rest_relaxed
// mutation: collect_relaxed
// mutation: unchecked_rest
// mutation: finish_relaxed
// mutation: next_relaxed
#include "models/relacy_atomics.hpp"

#include "actor/mailbox/mailbox.hpp"
#include "actor/mailbox/sending.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uintptr_t>;

// A link that knows whether its message still exists: a thread must be done with the link before
// the message is freed.
struct message_link : models::atomic<std::uintptr_t> {
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
  // The sender of this message knew that sender 0 had sent its first one.
  models::guarded<bool> after_first{false};
  unsigned handled = 0;  // the model's own, not checked for races
};

struct alignas(16) activation {
  models::guarded<message*> oldest{nullptr};
  void clear() { oldest = nullptr; }
};

using mailbox = actor::mailbox_word<message, activation, word, models::fenced_atomics>;

template <unsigned Senders, unsigned MailsEach, int Retries>
struct mailbox_model : rl::test_suite<mailbox_model<Senders, MailsEach, Retries>, Senders> {
  word word_{mailbox::inactive};
  message mails_[Senders][MailsEach];
  activation activations_[Senders];
  models::atomic<bool> first_sent_{false};
  // The actor's own state.
  models::guarded<unsigned> next_number_[Senders];

  struct side {
    mailbox_model& model;
    activation& own;  // one is enough: the sender that claims runs the actor until it rests
    void refuse(message&) { RL_ASSERT(false); }
    bool closing() { return false; }
    bool wakes_always() { return false; }
    bool enter_gate() { return true; }
    void leave() {}
    activation& activate(message& mail) {
      mail.next.store(0, std::memory_order_relaxed);
      own.oldest = &mail;
      return own;
    }
    void discard(activation& made) { made.clear(); }
    void wake(activation& made) { model.run(made); }
    void wake_hint(std::uintptr_t) {}
  };

  void handle(message& mail) {
    RL_ASSERT(++mail.handled == 1);
    const unsigned from = mail.from;
    RL_ASSERT(next_number_[from] == mail.number);
    if (mail.after_first) RL_ASSERT(next_number_[0] != 0);
    next_number_[from] = mail.number + 1;
    mail.next.there = false;
  }

  void handle_list(activation& active) {
    message* mail = active.oldest;
    active.clear();
    while (mail != nullptr) {
      auto* next = reinterpret_cast<message*>(mail->next.load(std::memory_order_relaxed));
      handle(*mail);
      mail = next;
    }
  }

  void run(activation& active) {
    mailbox box(word_);
    for (;;) {
      handle_list(active);
      if (models::mutated("unchecked_rest")) {
        if (!box.has_mail(active)) return word_.store(mailbox::inactive, std::memory_order_release);
      } else if (box.rest(active)) {
        return;
      }
      box.collect(active, [&](message& mail, bool) {
        mail.next.store(reinterpret_cast<std::uintptr_t>(static_cast<message*>(active.oldest)),
                        std::memory_order_relaxed);
        active.oldest = &mail;
      });
    }
  }

  void thread(unsigned self) {
    side mine{*this, activations_[self]};
    for (unsigned i = 0; i < MailsEach; ++i) {
      message& mail = mails_[self][i];
      mail.from = self;
      mail.number = i;
      mail.after_first = self != 0 && first_sent_.load(std::memory_order_acquire);
      actor::send_from_afar<Retries>(mailbox(word_), mail, false, mine);
      if (self == 0) first_sent_.store(true, std::memory_order_release);
    }
  }

  void after() {
    RL_ASSERT(mailbox(word_).read() == mailbox::inactive);
    for (auto& number : next_number_) RL_ASSERT(number == MailsEach);
  }
};

}  // namespace

int main() {
  models::weaken_if("append_relaxed", access::compare_exchange, "append");
  models::weaken_if("append_always_relaxed", access::exchange, "append_always");
  models::weaken_if("claim_relaxed", access::compare_exchange, "claim");
  models::weaken_if("rest_relaxed", access::compare_exchange, "rest");
  models::weaken_if("collect_relaxed", access::exchange, "collect");
  models::weaken_if("finish_relaxed", access::store, "finish");
  models::weaken_if("next_relaxed", access::load, "older_than");
  // The numbers: senders, messages of each, attempts before the exchange that cannot fail.
  const bool holds =
      models::check<mailbox_model<2, 2, 2>>(4) && models::check<mailbox_model<2, 2, 1>>(4) &&
      models::check<mailbox_model<3, 1, 1>>(3) && models::check<mailbox_model<3, 1, 0>>(3) &&
      models::check<mailbox_model<3, 2, 1>>(2);
  return holds ? 0 : 1;
}
