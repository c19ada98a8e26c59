// How an actor ends. Holders send to it and drop their refs. A worker runs it while it has mail,
// and may hold a ref, too. In its last message, or in its destructor, the actor may give out a ref
// to itself.
// Checks that the actor is destroyed and freed once, when no ref to it is left and everything that
// was sent before is handled; that every thread touches the actor only before that; and that the
// actor does not stay, because the worker would then wait without end.
//
// mutation: revive_after_look
// mutation: revive_without_compare
// mutation: no_retiring_mark
// mutation: end_without_asking_again
// mutation: drop_relaxed
// mutation: drop_one_of_many_relaxed
// mutation: drop_only_relaxed
// mutation: revive_relaxed
// mutation: revive_again_relaxed
#include "models/relacy_atomics.hpp"

#include "actor/mailbox/empty_mailbox.hpp"
#include "actor/mailbox/mailbox.hpp"
#include "actor/mailbox/sending.hpp"
#include "troupe/actor/cell.hpp"

namespace {

using namespace troupe;
using actor::step_without_mail;
using models::access;
using models::place;

// Whether the cell still exists: a thread may touch it only before it is freed.
models::guarded<bool>* cell_is_there;

template <class T>
struct cell_word : models::atomic<T> {
  using whole = models::atomic<T>;
  using whole::whole;

  static void touch() { RL_ASSERT(*cell_is_there); }
  T load(std::memory_order order, place at = place::current()) const {
    touch();
    return whole::load(order, at);
  }
  void store(T value, std::memory_order order, place at = place::current()) {
    touch();
    whole::store(value, order, at);
  }
  T exchange(T value, std::memory_order order, place at = place::current()) {
    touch();
    return whole::exchange(value, order, at);
  }
  T fetch_add(T n, std::memory_order order, place at = place::current()) {
    touch();
    return whole::fetch_add(n, order, at);
  }
  bool compare_exchange_strong(T& seen, T next, std::memory_order order, std::memory_order failure,
                               place at = place::current()) {
    touch();
    return whole::compare_exchange_strong(seen, next, order, failure, at);
  }
  bool compare_exchange_weak(T& seen, T next, std::memory_order order, std::memory_order failure,
                             place at = place::current()) {
    touch();
    if (models::mutated("no_retiring_mark") && next == T{1} << 30) next = 0;
    if (models::mutated("revive_without_compare") &&
        std::string_view(at.function_name()).find("revive") != std::string_view::npos) {
      whole::fetch_sub(T{1} << 30, order, at);
      return true;
    }
    return whole::compare_exchange_weak(seen, next, order, failure, at);
  }
};

enum kind : unsigned { plain, gives, unreferenced };

struct alignas(16) message {
  models::atomic<std::uintptr_t> next{0};
  models::guarded<kind> what{plain};
  unsigned handled = 0;  // the model's own, not checked for races
};

struct activation {
  models::guarded<message*> oldest{nullptr};
  models::guarded<bool> told{false};
  bool unreferenced() const { return told; }
  void set_unreferenced(bool is_told) { told = is_told; }
  void clear() { oldest = nullptr; }
};

using mailbox =
    actor::mailbox_word<message, activation, cell_word<std::uintptr_t>, models::fenced_atomics>;

enum class giving : std::uint8_t { never, in_handler, in_destructor };

template <unsigned Holders, giving Gives, bool WorkerHolds, int Retries = 1>
struct unreferenced_model
    : rl::test_suite<unreferenced_model<Holders, Gives, WorkerHolds, Retries>, Holders + 1> {
  static constexpr unsigned threads = Holders + 1, sends_max = 4;

  // The cell.
  models::guarded<bool> there_{true};
  cell_word<std::uintptr_t> word_{mailbox::inactive};
  actor::basic_ref_state<cell_word<std::uint32_t>> refs_;
  models::guarded<bool> stopped_{false};

  message mails_[threads][sends_max];
  activation activations_[threads][sends_max];
  unsigned sent_[threads] = {}, woken_[threads] = {};  // each element belongs to one thread
  models::atomic<std::uintptr_t> queue_{0};            // the worker's queue: an activation
  models::atomic<unsigned> given_{0};  // 1: there is a ref to take; 2: it is too late
  bool gone_ = false;                  // the model's own, not checked for races

  struct side {
    unreferenced_model& model;
    unsigned self;
    activation& own() { return model.activations_[self][model.woken_[self]]; }
    void refuse(message&) { RL_ASSERT(false); }
    bool closing() { return false; }
    bool wakes_always() { return false; }
    bool enter_gate() { return true; }
    void leave() {}
    activation& activate(message& mail) {
      mail.next.store(0, std::memory_order_relaxed);
      own().oldest = &mail;
      return own();
    }
    void discard(activation& made) { made.clear(); }
    void wake(activation& made) {
      ++model.woken_[self];
      model.queue_.store(reinterpret_cast<std::uintptr_t>(&made), std::memory_order_release);
      model.queue_.wake_one();
    }
    void wake_hint(std::uintptr_t) {}
  };

  void before() {
    cell_is_there = &there_;
    for (unsigned i = 1; i < Holders + WorkerHolds; ++i) refs_.add();
  }

  void send(unsigned self, kind what) {
    message& mail = mails_[self][sent_[self]++];
    mail.what = what;
    side mine{*this, self};
    actor::send_from_afar<Retries>(mailbox(word_), mail, false, mine);
  }

  // As drop_ref.
  void drop(unsigned self) {
    using dropped = typename decltype(refs_)::dropped;
    if (!refs_.drop_one_of_many() && refs_.drop() == dropped::last) send(self, unreferenced);
  }

  void hold(unsigned self) {
    send(self, self == 1 && Gives == giving::in_handler ? gives : plain);
    drop(self);
    if (Gives == giving::never || self != Holders) return;
    if (given_.exchange(2, std::memory_order_acquire) != 1) return;
    send(self, plain);
    drop(self);
  }

  // The actor takes a ref to itself and sends it away.
  void give() {
    refs_.add();
    unsigned none = 0;
    if (!given_.compare_exchange_strong(none, 1, std::memory_order_release,
                                        std::memory_order_relaxed))
      drop(0);
  }

  void handle(activation& active, message& mail) {
    RL_ASSERT(++mail.handled == 1);
    if (mail.what == unreferenced) {
      active.set_unreferenced(true);
    } else {
      RL_ASSERT(!stopped_ || Gives == giving::in_destructor);
      if (mail.what == gives) give();
    }
  }

  void handle_list(activation& active) {
    message* mail = active.oldest;
    active.clear();
    while (mail != nullptr) {
      auto* next = reinterpret_cast<message*>(mail->next.load(std::memory_order_relaxed));
      handle(active, *mail);
      mail = next;
    }
  }

  void end_object() {
    RL_ASSERT(!stopped_);
    if (Gives == giving::in_destructor) give();
    stopped_ = true;
  }

  void free_cell() {
    there_ = false;
    gone_ = true;
  }

  step_without_mail ask(activation& active) {
    if (!models::mutated("revive_after_look")) {
      return actor::next_step_without_mail(refs_, mailbox(word_), active, stopped_);
    }
    if (mailbox(word_).has_mail(active)) return step_without_mail::collects;
    if (active.unreferenced() && refs_.revive()) active.set_unreferenced(false);
    if (!active.unreferenced()) return step_without_mail::rests;
    return stopped_ ? step_without_mail::goes : step_without_mail::ends;
  }

  // As in turn.cpp.
  void run(activation& active) {
    mailbox box(word_);
    for (;;) {
      handle_list(active);
      switch (ask(active)) {
        case step_without_mail::ends:
          end_object();
          if (models::mutated("end_without_asking_again")) return free_cell();
          continue;
        case step_without_mail::goes:
          return free_cell();
        case step_without_mail::rests:
          if (box.rest(active)) return;
          break;
        case step_without_mail::collects:
          break;
      }
      box.collect(active, [&](message& mail, bool) {
        mail.next.store(reinterpret_cast<std::uintptr_t>(static_cast<message*>(active.oldest)),
                        std::memory_order_relaxed);
        active.oldest = &mail;
      });
    }
  }

  activation& next_of_queue() {
    for (;;) {
      const std::uintptr_t one = queue_.exchange(0, std::memory_order_acquire);
      if (one != 0) return *reinterpret_cast<activation*>(one);
      queue_.wait(0);
    }
  }

  void work() {
    for (bool holds = WorkerHolds; !gone_;) {
      activation& active = next_of_queue();
      if (std::exchange(holds, false)) {
        // As drop_at_home: the actor waits in this worker's queue.
        if (refs_.drop_only()) {
          active.set_unreferenced(true);
        } else {
          drop(0);
        }
      }
      run(active);
    }
  }

  void thread(unsigned self) { self == 0 ? work() : hold(self); }

  void after() {
    RL_ASSERT(gone_);
    for (unsigned self = 0; self < threads; ++self) {
      for (unsigned i = 0; i < sends_max; ++i)
        RL_ASSERT(mails_[self][i].handled == (i < sent_[self] ? 1 : 0));
    }
  }
};

}  // namespace

int main() {
  models::weaken_if("drop_relaxed", access::compare_exchange, "::drop()");
  models::weaken_if("drop_one_of_many_relaxed", access::compare_exchange, "drop_one_of_many");
  models::weaken_if("drop_only_relaxed", access::load, "is_only");
  models::weaken_if("revive_relaxed", access::load, "revive");
  models::weaken_if("revive_again_relaxed", access::compare_exchange, "revive");
  // The parameters: the number of holders, when the actor gives out a ref, whether the worker has
  // one, and the attempts before the exchange that cannot fail.
  const bool all = models::check<unreferenced_model<1, giving::in_handler, true>>();
  models::weak_may_fail = false;
  const bool holds = all && models::check<unreferenced_model<1, giving::never, true>>(4) &&
                     models::check<unreferenced_model<2, giving::never, false>>(3) &&
                     models::check<unreferenced_model<2, giving::never, true>>() &&
                     models::check<unreferenced_model<2, giving::in_handler, false>>() &&
                     models::check<unreferenced_model<2, giving::in_destructor, false>>() &&
                     models::check<unreferenced_model<2, giving::in_handler, true, 0>>();
  return holds ? 0 : 1;
}
