// select: two channels without places, on which parties send, and selects that receive from both,
// or send to one and receive from the other, and may give up, or pause and resume, as a branch of
// when_any does, while a limit may end the wait. Checks C1 (a party that is forgotten is a
// deadlock) and C2: each value that was sent is received once; that no party touches a select that
// has gone; that nothing happens during a pause; and that of the sends of one race only one happens
// before its party has run, while those that were passed over are looked at afterwards.
//
// mutation: decide_in_two
// mutation: no_leave
// mutation: select_unlocked
// mutation: no_mutex
// mutation: no_pause
// mutation: resume_blindly
// mutation: enter_always
// mutation: fail_once
// mutation: no_second_look
// mutation: keep_undecided
// mutation: enter_relaxed
// mutation: leave_relaxed
#include "models/relacy_atomics.hpp"

#include <optional>

#include "troupe/sync/channels/channel_state.hpp"
#include "troupe/sync/channels/select_parts.hpp"
#include "troupe/task/groups/race.hpp"

namespace {

using namespace troupe;

// A mutation takes it away from all, or from the selects.
struct list_mutex {
  static bool is_gone(const models::place& at) {
    return models::mutated("no_mutex") ||
           (models::mutated("select_unlocked") &&
            std::string_view(at.function_name()).find("channel_base") != std::string_view::npos);
  }
  void lock(models::place at = models::place::current()) {
    if (!is_gone(at)) mutex.lock();
  }
  void unlock(models::place at = models::place::current()) {
    if (!is_gone(at)) mutex.unlock();
  }
  models::mutex mutex;
};

// The word of a decision; a mutation replaces its compare-and-swap by a load and a store. Whoever
// decides must be ordered before the end of the select.
template <class T>
struct decision_word : models::atomic<T> {
  using models::atomic<T>::atomic;
  bool compare_exchange_strong(T& seen, T next, std::memory_order order,
                               std::memory_order failure) {
    static_cast<void>(static_cast<unsigned>(gone));
    if (!models::mutated("decide_in_two"))
      return models::atomic<T>::compare_exchange_strong(seen, next, order, failure);
    const T found = this->load(order);
    if (found == seen) this->store(next, order);
    return std::exchange(seen, found) == found;
  }
  models::guarded<unsigned> gone{0};
};

struct race_parts {
  template <class T>
  using atomic = models::atomic<T>;
};
struct send_race : tasks::race_word<race_parts> {
  using base = tasks::race_word<race_parts>;
  bool enter() {
    if (models::mutated("enter_always")) return true;
    if (!models::mutated("fail_once")) return base::enter();
    if (!entered_.exchange(true, std::memory_order_acq_rel)) return true;
    skipped_.store(true, std::memory_order_relaxed);
    return false;
  }
  // The party that has entered found that the wait was decided meanwhile.
  void leave() {
    if (!models::mutated("keep_undecided")) base::leave();
  }
  // In the turn of the party in the race.
  void leave_in_turn() { base::leave(); }
  bool must_look() { return base::must_look() && !models::mutated("no_second_look"); }
};

struct parts {
  template <class T>
  using atomic = decision_word<T>;
  using mutex = list_mutex;
  using race = send_race;
};

struct token {
  token(unsigned given) : value(given) {}
  token(token&& other) noexcept : value(other.value) { other.value = 0U; }
  models::guarded<unsigned> value;
};

using state = sync::channel_state<token, parts>;
using receiving = sync::receiving_waiter<token, parts>;
using sending = sync::sending_waiter<token, parts>;
using one_waiter = sync::channel_waiter<parts>;

struct receive_case : receiving {
  explicit receive_case(state& of) : from(&of) {}
  static bool do_inside(one_waiter& self, one_waiter*& served) noexcept {
    auto& one = static_cast<receive_case&>(self);
    return one.from->receive_inside(one, served);
  }
  state* from;
};

struct send_case : sending {
  send_case(state& to, token& what) : into(&to) { value = &what; }
  static bool do_inside(one_waiter& self, one_waiter*& served) noexcept {
    auto& one = static_cast<send_case&>(self);
    return one.into->send_inside(one, served);
  }
  state* into;
};

struct party {
  void wake() { woken.open(); }
  models::latch woken;
};
struct selecting : sync::select_base<parts>, party {
  selecting() { base::wake = &wake_it; }
  static void wake_it(sync::waiter& self) noexcept { static_cast<selecting&>(self).party::wake(); }
  using base = sync::select_base<parts>;
  bool pause() {
    return models::mutated("no_pause") ? winner_.load(std::memory_order_relaxed) == open
                                       : base::pause();
  }
  void resume() {
    if (!models::mutated("resume_blindly")) return base::resume();
    winner_.store(open, std::memory_order_relaxed);
  }
  // A limit. Thread: any.
  void end_early() {
    if (!withdraw()) return;
    was_ended = 1U;
    woken.open();
  }
  models::guarded<unsigned> was_ended{0};
  unsigned end() {
    const unsigned won =
        models::mutated("no_leave") ? winner_.load(std::memory_order_relaxed) : leave();
    winner_.gone = 1U;
    return won;
  }
};
// A select with its cases. They stay in memory until the model ends.
struct select_party {
  select_party(state& from, state& other, unsigned value)
      : mine(value), first(from), second(other), out(other, mine) {}
  token mine;
  receive_case first, second;
  send_case out;
  sync::select_case<parts> cases[2];
  selecting self;
};
struct plain_sender : sending, party {
  explicit plain_sender(token& what) {
    value = &what;
    sending::wake = &wake_it;
  }
  static void wake_it(sync::waiter& self) noexcept {
    static_cast<plain_sender&>(self).party::wake();
  }
};

struct plain_receiver : receiving, party {
  plain_receiver() { receiving::wake = &wake_it; }
  static void wake_it(sync::waiter& self) noexcept {
    static_cast<plain_receiver&>(self).party::wake();
  }
};

enum class will : std::uint8_t { insist, give_up, pause, pause_until_limit };

// What all scenarios share. The numbers are those of the threads, so that their sums tell which
// values were sent and received.
template <class Scenario>
struct select_model : rl::test_suite<Scenario, 3> {
  state left{0}, right{0};
  models::guarded<unsigned> sent[3], got[3];
  std::optional<select_party> places[3][2];
  unsigned selects[3]{};
  models::latch begun, limit_is_gone;  // of a select that pauses until a limit
  models::guarded<unsigned> is_waiting{0};

  // Receives from both, or receives from the one and sends to the other.
  void select(unsigned index, state& from, state& other, bool sends, will how) {
    std::optional<select_party>& place = places[index][selects[index]++];
    auto& [mine, first, second, out, cases, self] = place.emplace(from, other, 1U << index);
    cases[0] = {&from, &first, &receive_case::do_inside, sync::channel_side::receivers, 0};
    cases[1] = {&other, &second, &receive_case::do_inside, sync::channel_side::receivers, 0};
    if (sends) cases[1] = {&other, &out, &send_case::do_inside, sync::channel_side::senders, 0};
    const bool waits = self.start(cases, [] {});
    if (how == will::pause_until_limit) {
      is_waiting = waits ? 1U : 0U;
      begun.open();
    }
    if (waits) {
      if (how == will::give_up && self.withdraw()) {
        self.end();
        RL_ASSERT(mine.value == 1U << index);
        return;
      }
      if (how >= will::pause && self.pause()) {
        RL_ASSERT(mine.value == 1U << index);
        self.resume();
      }
      self.woken.wait();
    }
    if (how == will::pause_until_limit) {
      limit_is_gone.wait();
      if (self.was_ended == 1U) return;
    }
    const unsigned won = self.end();
    if (won == 1 && sends) {
      RL_ASSERT(mine.value == 0U);
      sent[index] = sent[index] + (1U << index);
      return;
    }
    receiving& taken = won == 0 ? first : second;
    RL_ASSERT(taken.value.has_value() && mine.value == 1U << index);
    got[index] = got[index] + taken.value->value;
  }

  void send(unsigned index, state& to, will how) {
    token mine(1U << index);
    plain_sender one(mine);
    if (to.send_or_wait(one, [] {})) {
      if (how == will::give_up && to.withdraw(sync::channel_side::senders, one)) {
        RL_ASSERT(mine.value == 1U << index);
        return;
      }
      if (how == will::pause && to.pause(one)) {
        RL_ASSERT(mine.value == 1U << index);
        to.resume(one);
      }
      one.woken.wait();
    }
    RL_ASSERT(mine.value == 0U);
    sent[index] = 1U << index;
  }

  void after() {
    unsigned all_sent = 0, all_got = 0;
    for (unsigned i = 0; i < 3; ++i) {
      all_sent += sent[i];
      all_got += got[i];
    }
    RL_ASSERT(all_sent == all_got);
  }
};

// One party sends on both channels in one race, as two branches of a when_any do; others receive.
template <class Scenario>
struct race_model : rl::test_suite<Scenario, 3> {
  struct racer : plain_sender {
    using plain_sender::plain_sender;
    bool waits = false;
  };
  state left{0}, right{0};
  send_race race;
  models::latch either;  // of the sends, or the select, has happened
  token first_value{1U}, second_value{2U};
  models::guarded<unsigned> got[3];

  // Receives a value, or gives up if it is not served at once.
  void receive(unsigned index, state& from, will how) {
    plain_receiver one;
    if (from.receive_or_wait(one, [] {})) {
      if (how == will::give_up && from.withdraw(sync::channel_side::receivers, one)) return;
      one.woken.wait();
    }
    got[index] = one.value->value;
  }
  static void begin(racer& one, state& to, send_race& in) {
    one.waits = to.send_or_wait(one, [&] { one.race = &in; });
  }
  static void look(racer& one, state& to) {
    if (one.waits && to.pause(one)) to.resume(one);
  }
};

// Both sends are wanted, so that both happen, one after the other.
struct race_of_sends : race_model<race_of_sends> {
  models::guarded<unsigned> happened[2];

  struct telling : racer {
    telling(race_of_sends& all, unsigned which, token& what) : racer(what), of(all), nth(which) {
      sending::wake = &tell;
    }
    static void tell(sync::waiter& self) noexcept {
      auto& one = static_cast<telling&>(self);
      one.of.happened[one.nth] = 1U;
      one.of.either.open();
      one.party::wake();
    }
    race_of_sends& of;
    const unsigned nth;
  };
  void send_both() {
    telling first(*this, 0, first_value), second(*this, 1, second_value);
    begin(first, left, race);
    begin(second, right, race);
    if (first.waits && second.waits) {
      either.wait();
      // the other one has not happened, so that no thread writes its word
      const bool was_first = happened[0] == 1U;
      RL_ASSERT(was_first != (happened[1] == 1U));
      RL_ASSERT((was_first ? second_value : first_value).value != 0U);
      race.leave_in_turn();
      if (race.must_look()) was_first ? look(second, right) : look(first, left);
    }
    if (first.waits) first.woken.wait();
    if (second.waits) second.woken.wait();
  }
  void thread(unsigned index) {
    if (index == 0) send_both();
    if (index == 1) receive(1, left, will::insist);
    if (index == 2) receive(2, right, will::insist);
  }
  void after() { RL_ASSERT(got[1] == 1U && got[2] == 2U); }
};

// A send, and a select that sends on the other channel or receives from a third one.
struct race_with_select : race_model<race_with_select> {
  state extra{0};
  token extra_value{4U};
  std::optional<select_party> place;

  void send_and_select() {
    racer first(first_value);
    begin(first, left, race);
    select_party& both = place.emplace(extra, right, 2U);
    both.cases[0] = {&extra, &both.first, &receive_case::do_inside, sync::channel_side::receivers,
                     0};
    both.cases[1] = {&right, &both.out, &send_case::do_inside, sync::channel_side::senders, 0};
    both.self.join_race(&race);
    const bool waits = both.self.start(both.cases, [] {});
    const bool was_given_up = waits && both.self.withdraw();
    if (waits && !was_given_up) {
      both.self.woken.wait();
      if (both.self.has_entered_race()) race.leave_in_turn();
    }
    if (waits && race.must_look()) look(first, left);
    if (first.waits) first.woken.wait();
    RL_ASSERT(first_value.value == 0U);
  }
  void thread(unsigned index) {
    if (index == 0) send_and_select();
    if (index == 1) {
      plain_sender one(extra_value);
      if (extra.send_or_wait(one, [] {}) && !extra.withdraw(sync::channel_side::senders, one))
        one.woken.wait();
      receive(1, left, will::insist);
    }
    if (index == 2) receive(2, right, will::give_up);
  }
  void after() { RL_ASSERT(got[1] == 1U); }
};

// Two senders insist, and a select takes the value of each.
struct all_insist : select_model<all_insist> {
  void thread(unsigned index) {
    if (index == 0) send(0, left, will::insist);
    if (index == 1) send(1, right, will::insist);
    if (index != 2) return;
    select(2, left, right, false, will::insist);
    select(2, left, right, false, will::insist);
  }
};
// The same, but all give up if they are not served at once.
struct all_give_up : select_model<all_give_up> {
  void thread(unsigned index) {
    if (index == 0) send(0, left, will::give_up);
    if (index == 1) send(1, right, will::give_up);
    if (index == 2) select(2, left, right, false, will::give_up);
  }
};
// Two selects that want each other.
struct exchange : select_model<exchange> {
  void thread(unsigned index) {
    if (index == 0) select(0, left, right, true, will::insist);
    if (index == 1) select(1, right, left, true, will::insist);
  }
};
// The same, with a third party, and all give up.
struct exchange_of_three : select_model<exchange_of_three> {
  void thread(unsigned index) {
    if (index == 0) select(0, left, right, true, will::give_up);
    if (index == 1) select(1, right, left, true, will::give_up);
    if (index == 2) send(2, left, will::give_up);
  }
};
// Both senders pause, and the select that receives from them insists.
struct senders_pause : select_model<senders_pause> {
  void thread(unsigned index) {
    if (index == 0) send(0, left, will::pause);
    if (index == 1) send(1, right, will::pause);
    if (index != 2) return;
    select(2, left, right, false, will::insist);
    select(2, left, right, false, will::insist);
  }
};
// Two selects that want each other, and pause.
struct exchange_with_pauses : select_model<exchange_with_pauses> {
  void thread(unsigned index) {
    if (index == 0) select(0, left, right, true, will::pause);
    if (index == 1) select(1, right, left, true, will::pause);
  }
};
// The same with one, which a limit may end while it is paused, or resumes.
struct pause_under_limit : select_model<pause_under_limit> {
  void thread(unsigned index) {
    if (index == 0) select(0, left, right, true, will::pause_until_limit);
    if (index == 1) send(1, left, will::give_up);
    if (index != 2) return;
    begun.wait();
    if (is_waiting == 1U) places[0][0]->self.end_early();
    limit_is_gone.open();
  }
};

}  // namespace

int main() {
  models::weaken_if("enter_relaxed", models::access::exchange, "enter");
  models::weaken_if("leave_relaxed", models::access::exchange, "leave");
  const unsigned preemptions = models::deep(4);
  const bool holds =
      models::check<all_insist>(preemptions) && models::check<all_give_up>(preemptions) &&
      models::check<exchange>(preemptions) && models::check<exchange_of_three>(preemptions) &&
      models::check<senders_pause>(preemptions) &&
      models::check<exchange_with_pauses>(preemptions) &&
      models::check<pause_under_limit>(preemptions) && models::check<race_of_sends>(preemptions) &&
      models::check<race_with_select>(preemptions);
  return holds ? 0 : 1;
}
