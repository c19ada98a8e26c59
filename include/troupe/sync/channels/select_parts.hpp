// select_parts: how a select tries its cases, waits in the lists of all its channels, and leaves
// them. For the library's own use; users meet select(). The protocol and its proof:
// docs/protocols/channels.md.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

#include "troupe/sync/channels/channel_state.hpp"

namespace troupe::sync {

// The operations that a select needs of each of its cases.
template <class Parts = channel_parts>
struct select_case {
  channel_base<Parts>* on = nullptr;
  channel_waiter<Parts>* party = nullptr;
  bool (*do_inside)(channel_waiter<Parts>&, channel_waiter<Parts>*& served) noexcept = nullptr;
  channel_side side = channel_side::receivers;
  std::uint32_t nth = 0;  // the index of the nth case in the order of the channels' addresses
};

// The part of a select that does not depend on the types of its cases. Thread: the party that
// selects; withdraw() any.
template <class Parts = channel_parts>
class select_base : public select_decision<Parts> {
  using base = select_decision<Parts>;

 public:
  using case_span = std::span<select_case<Parts>>;
  static constexpr const char* name = "one of several channels";

  select_base() = default;
  select_base(select_base&&) noexcept {}

  // As `start` of an operation. The cases must stay where they are until leave().
  template <class Prepare>
  bool start(case_span all, const Prepare& prepare) noexcept {
    cases_ = all;
    const choice first = choose();
    return !(first.ready && do_one(first.index)) && do_or_wait(first.index, prepare);
  }
  // The coroutine that is about to select.
  template <class Coroutine>
  void begin_in(const Coroutine& coroutine) noexcept {
    choose_case_ = coroutine.call->at->choose_case;
    if (choose_case_ != nullptr) [[unlikely]]
      actor_ = coroutine.call->actor;
  }
  // Does one of the cases if it can be done at once.
  bool try_now(case_span all) noexcept {
    cases_ = all;
    const choice first = choose();
    for (std::uint32_t i = 0; first.ready && i < count(); ++i) {
      if (do_one((first.index + i) % count())) return true;
    }
    return false;
  }
  bool withdraw() noexcept {
    if (!give_up()) return false;
    static_cast<void>(leave());
    return true;
  }
  // No case happens from now on. False if a send has happened, which cannot be undone. Thread: as
  // resume(), the party that selects.
  bool pause() noexcept {
    std::uint32_t seen = base::open;
    return base::change(seen, base::paused) || seen >= count() ||
           cases_[seen].side != channel_side::senders;
  }
  // The race in which the select waits. Called before its waiters are in the lists.
  void join_race(typename Parts::race* joined) noexcept { race_ = joined; }
  typename Parts::race* joined_race() const noexcept { return race_; }
  // After pause(): does a case that can be done now, and otherwise waits on. While the channels are
  // locked, the select cannot give up.
  void resume() noexcept {
    // order: relaxed (both)  only this party pauses, and a party that gives up takes one of the
    // mutexes
    if (base::winner_.load(std::memory_order_relaxed) != base::paused) return;
    channel_waiter<Parts>* served = nullptr;
    bool done = false;
    for_each_channel([](channel_base<Parts>& channel) { channel.lock(); });
    if (base::winner_.load(std::memory_order_relaxed) == base::paused) {
      std::uint32_t index = 0;
      for (; index < count() && !done; ++index) done = do_in_race(cases_[index], served);
      win(done ? --index : base::open);
      if (done) cases_[index].on->list(cases_[index].side).withdraw(*cases_[index].party);
    }
    for_each_channel([](channel_base<Parts>& channel) { channel.unlock(); });
    if (served != nullptr) served->wake(*served);
    if (done) base::wake(*this);
  }
  // After the end, in the turn of the party that selects. Returns true if a send has happened, so
  // that its race was entered.
  bool has_entered_race() noexcept {
    const std::uint32_t winner = leave();
    return race_ != nullptr && winner < count() && cases_[winner].side == channel_side::senders;
  }
  // After the end: takes the waiters that have lost out of their lists. A party that finds one of
  // them there before is done with it when it gives the channel's mutex back. Returns the index of
  // the winner.
  std::uint32_t leave() noexcept {
    // order: relaxed  the wake, or this thread, has published it
    const std::uint32_t winner = base::winner_.load(std::memory_order_relaxed);
    if (!listed_) return winner;
    listed_ = false;
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (i != winner) cases_[i].on->withdraw(cases_[i].side, *cases_[i].party);
    }
    return winner;
  }

 private:
  struct choice {
    std::uint32_t index;
    bool ready;  // it seems so
  };

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(cases_.size()); }

  // One of those that seem ready, each with the same chance; any one if none does. Without a
  // simulation that decides, the choice follows from how many values have passed.
  choice choose() const noexcept {
    std::uint64_t mixed = 1;
    std::uint32_t ready = 0;
    for (const select_case<Parts>& branch : cases_) {
      mixed +=
          2 * branch.on->passed() + branch.on->size();  // grows with each send and each receive
      ready += branch.on->may_be_ready(branch.side) ? 1U : 0U;
    }
    mixed *= 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ mixed >> 31) * 0xBF58476D1CE4E5B9U;
    const std::uint32_t among = ready == 0 ? count() : ready;
    const auto chosen = choose_case_ != nullptr
                            ? choose_case_(actor_, among)
                            : static_cast<std::uint32_t>((mixed >> 32) * among >> 32);
    if (among == count()) return {chosen, ready != 0};
    std::uint32_t skip = chosen, index = 0;
    for (; index + 1 < count(); ++index) {
      if (cases_[index].on->may_be_ready(cases_[index].side) && skip-- == 0) break;
    }
    return {index, true};
  }

  bool do_one(std::uint32_t index) noexcept {
    const select_case<Parts>& branch = cases_[index];
    channel_waiter<Parts>* served = nullptr;
    branch.on->lock();
    const bool done = branch.do_inside(*branch.party, served);
    branch.on->unlock();
    if (!done) return false;
    win(index);
    if (served != nullptr) served->wake(*served);
    return true;
  }

  bool do_in_race(const select_case<Parts>& branch, channel_waiter<Parts>*& served) noexcept {
    const bool enters = race_ != nullptr && branch.side == channel_side::senders;
    if (enters && !race_->enter()) return false;
    const bool done = branch.do_inside(*branch.party, served);
    if (enters && !done) race_->leave();
    return done;
  }

  // While all channels are locked, no case can become ready and no party can take a waiter: the
  // select is in all lists at once, or in none.
  template <class Prepare>
  bool do_or_wait(std::uint32_t first, const Prepare& prepare) noexcept {
    sort();
    for_each_channel([](channel_base<Parts>& channel) { channel.lock(); });
    channel_waiter<Parts>* served = nullptr;
    bool done = false;
    for (std::uint32_t i = 0; i < count() && !done; ++i) {
      const std::uint32_t index = (first + i) % count();
      done = cases_[index].do_inside(*cases_[index].party, served);
      if (done) win(index);
    }
    if (!done) {
      prepare();
      enter();
    }
    for_each_channel([](channel_base<Parts>& channel) { channel.unlock(); });
    if (served != nullptr) served->wake(*served);
    return !done;
  }
  void enter() noexcept {
    listed_ = true;
    for (std::uint32_t i = 0; i < count(); ++i) {
      channel_waiter<Parts>& party = *cases_[i].party;
      party.part_of = this;
      party.index = i;
      party.paused = false;
      party.race = cases_[i].side == channel_side::senders ? race_ : nullptr;
      party.wake = &wake_select;
      cases_[i].on->list(cases_[i].side).push(party);
    }
  }
  // The party on the other side of a case has taken it: the select is over.
  static void wake_select(waiter& self) noexcept {
    select_decision<Parts>& decision = *static_cast<channel_waiter<Parts>&>(self).part_of;
    decision.wake(decision);
  }
  // A limit ends the wait on any thread, even while the party pauses it or lets it resume.
  bool give_up() noexcept {
    std::uint32_t seen = base::open;
    if (base::change(seen, base::given_up)) return true;
    if (seen != base::paused) return false;
    channel_base<Parts>& first = *cases_[0].on;
    std::lock_guard guard(first);
    while (seen == base::paused || seen == base::open) {
      if (base::change(seen, base::given_up)) return true;
    }
    return false;
  }
  // order: relaxed  no other thread can see this select, or it is paused and the channels are
  // locked
  void win(std::uint32_t index) noexcept { base::winner_.store(index, std::memory_order_relaxed); }

  void sort() noexcept {
    for (std::uint32_t i = 0; i < count(); ++i) {
      std::uint32_t at = i;
      for (; at > 0 && std::less<>{}(cases_[i].on, cases_[cases_[at - 1].nth].on); --at)
        cases_[at].nth = cases_[at - 1].nth;
      cases_[at].nth = i;
    }
  }
  template <class Act>
  void for_each_channel(Act act) noexcept {
    const channel_base<Parts>* before = nullptr;
    for (const select_case<Parts>& branch : cases_) {
      channel_base<Parts>* const next = cases_[branch.nth].on;
      if (next != before) act(*next);
      before = next;
    }
  }

  case_span cases_;
  typename Parts::race* race_ = nullptr;
  std::uint32_t (*choose_case_)(void*, std::uint32_t) noexcept = nullptr;
  void* actor_;  // with choose_case_
  bool listed_ = false;
};

}  // namespace troupe::sync
