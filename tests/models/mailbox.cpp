// The mailbox word: two threads send; whoever wakes the actor runs it until it rests.
// Checks M1 to M4: each message is handled once, whole and in its sender's order, by one thread at a time,
// and the next turn sees what the last one did. With few retries the way of append_always is taken as well.
//
// mutation: claim_relaxed
// mutation: append_relaxed
// mutation: collect_relaxed
// mutation: rest_relaxed
#include "models/relacy_atomics.hpp"

#include "actor/mailbox.hpp"

namespace {

using namespace troupe;
using models::access;

struct message {
  models::atomic<std::uintptr_t> next{0};
  models::guarded<unsigned> from{0}, number{0}, handled{0};
};

struct activation {
  models::guarded<message*> first{nullptr};  // what the claim brought
};

using word = models::atomic<std::uintptr_t>;
using mailbox = actor::mailbox_word<message, activation, word, models::fenced_atomics>;

constexpr unsigned senders = 2;

template <unsigned Messages, int Retries>
struct mailbox_model : rl::test_suite<mailbox_model<Messages, Retries>, senders> {
  word state{0};
  message messages[senders][Messages];
  activation activations[senders][Messages];
  models::guarded<unsigned> turns{0};           // the actor's own state
  models::guarded<unsigned> last[senders] = {};  // number of the last one handled, plus one

  void handle(message& mail) {
    RL_ASSERT(mail.number == last[mail.from]);
    last[mail.from] = mail.number + 1;
    mail.handled = mail.handled + 1;
  }

  void run(activation& active) {
    mailbox box(state);
    turns = turns + 1;
    if (active.first != nullptr) handle(*active.first);
    do {
      if (!box.has_mail(active)) continue;
      message* newest_first[senders * Messages];
      unsigned count = 0;
      box.collect(active, [&](message& mail) { newest_first[count++] = &mail; });
      while (count > 0) handle(*newest_first[--count]);
    } while (!box.rest(active));
  }

  // The loop of deliver.cpp.
  void send(message& mail, activation& spare) {
    mailbox box(state);
    for (int tries = 0; tries < Retries; ++tries) {
      const std::uintptr_t seen = box.look();
      if (seen != mailbox::dormant) {
        if (box.append(seen, mail)) return;
        continue;
      }
      spare.first = &mail;
      if (box.claim(spare)) return run(spare);
      spare.first = nullptr;
    }
    if (box.append_always(mail) != mailbox::dormant) return;
    box.finish(mail, mailbox::tagged(spare));
    run(spare);
  }

  void thread(unsigned index) {
    for (unsigned i = 0; i < Messages; ++i) {
      messages[index][i].from = index;
      messages[index][i].number = i;
      send(messages[index][i], activations[index][i]);
    }
  }

  void after() {
    for (auto& of_one : messages) {
      for (message& mail : of_one) RL_ASSERT(mail.handled == 1);
    }
    RL_ASSERT(mailbox(state).look() == mailbox::dormant);
  }
};

}  // namespace

int main() {
#if defined(MUTATION_claim_relaxed)
  models::weakened = {access::compare_exchange, "claim"};
#elif defined(MUTATION_append_relaxed)
  models::weakened = {access::compare_exchange, "append"};
#elif defined(MUTATION_collect_relaxed)
  models::weakened = {access::exchange, "collect"};
#elif defined(MUTATION_rest_relaxed)
  models::weakened = {access::compare_exchange, "rest"};
#endif
  return models::check<mailbox_model<2, 16>>(3) && models::check<mailbox_model<2, 1>>(3) ? 0 : 1;
}
