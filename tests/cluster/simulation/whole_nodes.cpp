// Whole nodes under seeds: they are killed, stopped and started; the network between them is cut in
// both directions or one, is slow, loses, doubles and reorders; nodes lose the way to the database,
// or only that to the leases or to the actors; clocks are wrong by as much as the margin allows.
// What clients were told of each durable actor has one order that explains it, posts have their
// effect once, no two activations of a volatile actor work at a time, and no ask hangs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/node/simulation_parts.hpp"
#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "support/linearizable.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/database/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::node;
using durable::message_id;
using linearizable::counter_model;
using linearizable::register_model;
using std::chrono::nanoseconds;

enum class mistake : std::uint8_t { none, no_fence };

std::uint64_t below(std::uint64_t many) { return kit::random_number() % many; }
bool one_in(std::uint64_t many) { return below(many) == 0; }
nanoseconds up_to(nanoseconds most) {
  return nanoseconds(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most.count()))));
}
std::int64_t now_ns() { return troupe::now().count(); }

// A durable value.
struct Register {
  std::int64_t value = 0;
  std::int64_t read() { return value; }
  std::int64_t write(std::int64_t next) {
    value = next;
    return 0;
  }
  std::int64_t replace(std::int64_t expected, std::int64_t next) {
    if (value != expected) return 0;
    value = next;
    return 1;
  }
  std::int64_t add(std::int64_t more) { return value += more; }
  // This actor only passes it on.
  task<std::int64_t> write_to(durable::turn& turn, std::string other, std::int64_t next) {
    auto asked = turn.ask<&Register::write>(other, next);
    co_return co_await std::move(asked);
  }
};
// A durable list of messages, and how often each had its effect.
struct Ledger {
  std::map<std::string, int> seen;
  void note(std::string id) { ++seen[id]; }
  void pass(durable::turn& turn, std::string other, std::string id) {
    turn.post<&Ledger::note>(other, id);
  }
  std::map<std::string, int> all() { return seen; }
};

// What volatile actors do, seen from outside of all nodes.
struct observations {
  std::int64_t activations = 0;
  std::map<std::string, std::int64_t> working;  // by key, the activation that worked last
  std::map<std::string, int> told;
  std::string wrong;
};
observations* observed = nullptr;

// A volatile sum. Answers are its activation and the sum.
constexpr std::int64_t per_activation = 1'000'000;
struct Tally {
  explicit Tally(cluster::home its) : here(std::move(its)), activation(++observed->activations) {}
  std::int64_t add() {
    works();
    return activation * per_activation + ++sum;
  }
  task<std::int64_t> add_slowly(std::int64_t us) {
    works();
    co_await sleep_for(std::chrono::microseconds(us));
    co_return activation* per_activation + ++sum;
  }
  void tell(std::string id) {
    works();
    ++observed->told[id];
  }
  void works() {
    std::int64_t& last = observed->working[here.key()];
    if (activation < last)
      observed->wrong += "activation " + std::to_string(activation) + " of " + here.key() +
                         " works after activation " + std::to_string(last) + "; ";
    last = std::max(last, activation);
  }

  cluster::home here;
  const std::int64_t activation;
  std::int64_t sum = 0;
};

// One life of a node.
struct life {
  explicit life(node made) : at(std::move(made)) {}
  node at;
  bool lives = true;
};
using life_ref = std::shared_ptr<life>;

// An ask of a volatile actor.
struct volatile_ask {
  std::string key;
  std::int64_t called = 0, returned = linearizable::never;
  std::int64_t answer = 0;  // 0: it has no known end
};

class fleet {
 public:
  fleet(runtime& rt, mistake made) : rt_(rt) {
    // order: relaxed  its nodes are made later
    in.its_parts().checks_fences.store(made == mistake::none, std::memory_order_relaxed);
    duplicates_ = one_in(3);
  }

  task<> start_one() {
    // As much as the margin allows: a tenth of the lease.
    in.set_clock_rate(0.901 + 0.0001 * static_cast<double>(below(1'980)));
    cluster::options chosen;
    chosen.name = "node " + std::to_string(++started_);
    chosen.lease = 1s;
    chosen.margin = 100ms;
    chosen.ask_timeout = ask_timeout;
    chosen.drain_max = 800ms;
    chosen.idle_max = 500ms;
    auto made = std::make_shared<life>(
        node(rt_, in, std::move(chosen),
             durable::kind<Register, &Register::read, &Register::write, &Register::replace,
                           &Register::add, &Register::write_to>(),
             durable::kind<Ledger, &Ledger::note, &Ledger::pass, &Ledger::all>(),
             cluster::kind<Tally, &Tally::add, &Tally::add_slowly, &Tally::tell>()));
    // It is used from the time when it has joined.
    for (int tries = 0; tries < 200; ++tries) {
      bool has_joined = false;
      try {
        auto waits = made->at.ready();
        co_await std::move(waits);
        has_joined = true;
      } catch (const error&) {
      }
      if (has_joined) {
        nodes_.push_back(std::move(made));
        co_return;
      }
      co_await sleep_for(100ms);
    }
    complain("a node could not join");
  }

  std::vector<life_ref> living() const {
    std::vector<life_ref> all;
    for (const life_ref& one : nodes_) {
      if (one->lives) all.push_back(one);
    }
    return all;
  }
  life_ref any() const {
    const auto all = living();
    return all.empty() ? nullptr : all[below(all.size())];
  }
  void complain(const std::string& what) {
    if (wrong.size() < 1'000) wrong += std::to_string(now_ns() / 1'000'000) + " ms: " + what + "; ";
  }

  static constexpr std::chrono::milliseconds ask_timeout{1'000};
  const cluster::simulation in;
  std::string wrong;
  observations seen;

  runtime& on() const { return rt_; }
  bool has_duplicates() const { return duplicates_; }

 private:
  runtime& rt_;
  bool duplicates_ = false;
  int started_ = 0;
  std::vector<life_ref> nodes_;
};

// What they ask, and what they are told.
class clients {
 public:
  explicit clients(fleet& of) : all_(of) {}

  task<> run(std::uint64_t number) {
    for (int i = 0; goes_on; ++i) {
      co_await sleep_for(up_to(10ms));
      const life_ref by = all_.any();
      if (by == nullptr) continue;
      switch (below(8)) {
        case 0:
        case 1: {
          auto posts = post(std::to_string(number) + "." + std::to_string(i));
          co_await std::move(posts);
          break;
        }
        case 2:
        case 3: {
          auto asks = ask_tally(by->at);
          co_await std::move(asks);
          break;
        }
        case 4: {
          tell(by->at, std::to_string(number) + "." + std::to_string(i));
          break;
        }
        default: {
          auto asks = ask_register(by->at, register_key());
          co_await std::move(asks);
        }
      }
    }
  }
  // After the troubles: all is answered, by whatever node.
  task<> ask_all() {
    is_calm_ = true;
    for (const life_ref& one : all_.living()) {
      for (std::uint64_t i = 0; i < keys; ++i) {
        auto reads = ask_register(one->at, "register " + std::to_string(i));
        co_await std::move(reads);
        auto adds = ask_tally(one->at);
        co_await std::move(adds);
      }
    }
    auto looks = look_at_ledgers();
    co_await std::move(looks);
  }
  std::string what_is_wrong() const {
    std::string wrong = registers_.what_is_wrong();
    for (const auto& [id, times] : all_.seen.told) {
      if (times > 1 && !all_.has_duplicates())
        wrong += "what was told as " + id + " came " + std::to_string(times) + " times; ";
    }
    return wrong + all_.seen.wrong + what_is_wrong_with_tallies();
  }

  bool goes_on = true;
  std::size_t asked = 0, answered = 0;

 private:
  static constexpr std::uint64_t keys = 4;
  enum class end : std::uint8_t { answered, unknown, did_not_run };

  static std::string register_key() { return "register " + std::to_string(below(keys)); }
  static std::string ledger_key() { return "ledger " + std::to_string(below(keys)); }

  // How an ask has ended that was not answered.
  end end_of(const std::exception_ptr& why) {
    try {
      std::rethrow_exception(why);
    } catch (const database::error& e) {
      last_error_ = e.what();
      return e.effect() == database::effect::none ? end::did_not_run : end::unknown;
    } catch (const durable::shard_moved& e) {
      last_error_ = e.what();
      return e.is_stored() ? end::unknown : end::did_not_run;
    } catch (const durable::store_full& e) {
      last_error_ = e.what();
      return end::did_not_run;
    } catch (const cluster::error& e) {
      last_error_ = e.what();
      if (e.kind() == cluster::failure::malformed || e.kind() == cluster::failure::unknown_method)
        all_.complain(e.what());
      return e.may_have_run() ? end::unknown : end::did_not_run;
    } catch (const error& e) {
      last_error_ = e.what();
      return end::unknown;
    } catch (const std::exception& e) {
      all_.complain(std::string("an untyped failure: ") + e.what());
      return end::unknown;
    }
  }
  void check_end(const char* what, end how, std::int64_t begun, nanoseconds limit) {
    ++asked;
    answered += how == end::answered;
    const std::int64_t spent_ms = (now_ns() - begun) / 1'000'000;
    if (spent_ms > limit / 1ms + 50)
      all_.complain(std::string(what) + " took " + std::to_string(spent_ms) + " ms of " +
                    std::to_string(limit / 1ms));
    if (is_calm_ && how != end::answered)
      all_.complain(std::string(what) + " failed after the troubles: " + last_error_);
  }

  using register_ref = durable::ref<Register>;
  static future<std::int64_t> begin(const register_ref& to, const std::string& key,
                                    const register_model::call& what, bool passes_on) {
    if (passes_on) return to.ask<&Register::write_to>(key, what.value);
    switch (what.what) {
      case register_model::act::read:
        return to.ask<&Register::read>();
      case register_model::act::write:
        return to.ask<&Register::write>(what.value);
      case register_model::act::add:
        return to.ask<&Register::add>(what.value);
      default:
        return to.ask<&Register::replace>(what.expected, what.value);
    }
  }
  register_model::call some_call(const std::string& key) {
    const std::uint64_t act = is_calm_ ? 0 : below(5);
    if (act == 0) return register_model::read();
    if (act == 1) return register_model::write(last_value_ += 1'000);
    if (act != 2) return register_model::add(1);
    return register_model::replace(last_read_[key], last_value_ += 1'000);
  }
  task<> ask_register(node by, std::string key) {
    const register_model::call what = some_call(key);
    const bool passes_on = what.what == register_model::act::write && one_in(2);
    auto to = by.get_durable<Register>(passes_on ? "passer " + std::to_string(below(keys)) : key);
    // What the network doubles is known by its id.
    if (all_.has_duplicates()) to = to.with_id(message_id::random());
    const auto its = registers_.begin(key, what, now_ns());
    const nanoseconds limit = is_calm_ ? nanoseconds(5s) : 50ms + up_to(1'500ms);
    const std::int64_t begun = now_ns();
    end how = end::answered;
    try {
      auto asks = with_deadline(limit, [&] { return begin(to, key, what, passes_on); });
      const std::int64_t answer = co_await std::move(asks);
      registers_.end(its, answer, now_ns());
      if (what.what == register_model::act::read) last_read_[key] = answer;
    } catch (...) {
      how = end_of(std::current_exception());
    }
    // What was refused there may come a second time, when it is not refused.
    if (how == end::did_not_run && !all_.has_duplicates()) registers_.did_not_run(its);
    check_end("an ask of a durable actor", how, begun, limit);
  }

  task<> ask_tally(node by) {
    const std::string key = "tally " + std::to_string(below(keys));
    const bool is_slow = one_in(3), has_deadline = one_in(2);
    const nanoseconds limit = has_deadline ? 50ms + up_to(500ms) : nanoseconds(fleet::ask_timeout);
    const auto to = by.get<Tally>(key);
    const auto begins = [&] {
      const auto us = static_cast<std::int64_t>(below(80'000));
      return is_slow ? to.ask<&Tally::add_slowly>(us) : to.ask<&Tally::add>();
    };
    volatile_ask its{key, now_ns()};
    end how = end::answered;
    try {
      if (has_deadline && !is_calm_) {
        auto asks = with_deadline(limit, begins);
        its.answer = co_await std::move(asks);
      } else {
        auto asks = begins();
        its.answer = co_await std::move(asks);
      }
      its.returned = now_ns();
    } catch (...) {
      how = end_of(std::current_exception());
    }
    // On its own node an ask waits for the handlers before it, without another limit.
    check_end("an ask of a volatile actor", how, its.called, limit + 300ms);
    if (how != end::did_not_run) tallies_.push_back(std::move(its));
  }
  void tell(const node& by, const std::string& id) {
    try {
      by.get<Tally>("tally " + std::to_string(below(keys))).tell<&Tally::tell>(id);
    } catch (const error&) {
    }
  }

  // A post that is sent again until it is acknowledged, or given up.
  task<> post(std::string id) {
    const std::string to = ledger_key(), other = ledger_key();
    const bool passes_on = one_in(2);
    posted_.insert(id);
    for (int tries = 0; goes_on && tries < 8; ++tries) {
      const life_ref by = all_.any();
      if (by == nullptr) continue;
      end how = end::answered;
      const std::int64_t begun = now_ns();
      try {
        const auto ledger = by->at.get_durable<Ledger>(to).with_id(message_id::of(id));
        auto posts = with_deadline(700ms, [&] {
          return passes_on ? ledger.post<&Ledger::pass>(other, id) : ledger.post<&Ledger::note>(id);
        });
        co_await std::move(posts);
      } catch (...) {
        how = end_of(std::current_exception());
      }
      check_end("a post", how, begun, 700ms);
      if (how == end::answered) {
        acknowledged_.insert(id);
        co_return;
      }
      co_await sleep_for(up_to(100ms));
    }
  }
  task<> look_at_ledgers() {
    std::map<std::string, int> effects;
    for (std::uint64_t i = 0; i < keys; ++i) {
      const auto ledger = all_.any()->at.get_durable<Ledger>("ledger " + std::to_string(i));
      try {
        auto asks = with_deadline(5s, [&] { return ledger.ask<&Ledger::all>(); });
        const auto found = co_await std::move(asks);
        for (const auto& [id, times] : found) effects[id] += times;
      } catch (const error& e) {
        all_.complain(std::string("a ledger did not answer: ") + e.what());
      }
    }
    for (const std::string& id : posted_) {
      const int times = effects[id];
      if (times > 1 || (times == 0 && acknowledged_.contains(id)))
        all_.complain("the post " + id + " had its effect " + std::to_string(times) + " times");
    }
  }

  // Each activation counts, and what was asked after a later one has answered is not answered by
  // an earlier one.
  std::string what_is_wrong_with_tallies() const {
    if (all_.has_duplicates()) return {};
    std::map<std::string, std::set<std::int64_t>> activations;
    for (const volatile_ask& one : tallies_) {
      if (one.answer != 0) activations[one.key].insert(one.answer / per_activation);
    }
    linearizable::history<counter_model> counts;
    for (const volatile_ask& one : tallies_) {
      const auto name = [&](std::int64_t of) { return one.key + " as " + std::to_string(of); };
      if (one.answer != 0) {
        counts.add(name(one.answer / per_activation),
                   {1, one.called, one.returned, one.answer % per_activation});
        continue;
      }
      for (const std::int64_t each : activations[one.key])
        counts.add(name(each), {1, one.called, linearizable::never, std::nullopt});
    }
    std::string wrong = counts.what_is_wrong();
    for (const volatile_ask& late : tallies_) {
      for (const volatile_ask& early : tallies_) {
        if (late.answer == 0 || early.answer == 0 || late.key != early.key) continue;
        if (early.returned < late.called &&
            early.answer / per_activation > late.answer / per_activation)
          wrong += late.key + " was answered by an activation before that of an earlier answer; ";
      }
    }
    return wrong;
  }

  fleet& all_;
  bool is_calm_ = false;
  std::int64_t last_value_ = 0;
  std::map<std::string, std::int64_t> last_read_;
  linearizable::history<register_model> registers_;
  std::vector<volatile_ask> tallies_;
  std::set<std::string> posted_, acknowledged_;
  std::string last_error_;
};

class troubles {
 public:
  troubles(runtime& rt, mistake made)
      : all_(rt, made), asks_(all_), seeks_late_commits_(made == mistake::no_fence) {}

  // Returns what is wrong; "" for nothing.
  task<std::string> run() {
    observed = &all_.seen;
    const std::uint64_t nodes = 3 + below(3);
    for (std::uint64_t i = 0; i < nodes; ++i) {
      auto starts = all_.start_one();
      co_await std::move(starts);
    }
    std::vector<future<>> running;
    for (std::uint64_t i = 0; i < 6; ++i) running.push_back(all_.on().spawn(asks_.run(i)));
    set_faults();
    for (int i = 0; i < 6; ++i) {
      auto disturbs = disturb();
      co_await std::move(disturbs);
    }
    for (auto& one : stops_) co_await std::move(one);
    end_faults();
    while (all_.living().size() < 2) {
      auto starts = all_.start_one();
      co_await std::move(starts);
    }
    auto rests = rest();
    co_await std::move(rests);
    asks_.goes_on = false;
    for (auto& one : running) co_await std::move(one);
    // After failures an engine refuses all for up to 5 s.
    co_await sleep_for(5'500ms);
    auto empties = until_all_is_handled();
    co_await std::move(empties);
    auto asks_all = asks_.ask_all();
    co_await std::move(asks_all);
    std::string wrong = all_.wrong + asks_.what_is_wrong();
    auto ends = end();
    co_await std::move(ends);
    co_return wrong;
  }
  std::size_t asked() const { return asks_.asked; }
  std::size_t answered() const { return asks_.answered; }

 private:
  void set_faults() {
    cluster::network_faults rough;
    rough.loses = one_in(2) ? 50 : 0;
    rough.duplicates = all_.has_duplicates() ? 20 : 0;
    rough.delay_max = one_in(2) ? 2ms : 40ms;
    rough.reorders = one_in(2);
    rough.silent_deaths = one_in(2);
    auto network = all_.in.network();
    network.set_faults(rough);
    cluster::database_faults faults;
    faults.refuses = 40;
    faults.loses = 40;
    faults.delay_max = one_in(2) ? 3ms : 60ms;
    all_.in.set_faults(faults);
  }
  void end_faults() {
    auto network = all_.in.network();
    network.heal();
    network.set_faults({});
    all_.in.set_faults({});
  }

  task<> disturb() {
    const life_ref one = all_.any(), other = all_.any();
    constexpr std::uint64_t loses_leases = 5;
    const bool chosen = seeks_late_commits_ && !one_in(4);
    switch (one == nullptr ? 0 : chosen ? loses_leases : below(9)) {
      case 0:
        if (all_.living().size() < 5) {
          auto starts = all_.start_one();
          co_await std::move(starts);
        }
        break;
      case 1:
        one->lives = false;
        all_.in.kill(one->at);
        break;
      case 2:
        one->lives = false;
        stops_.push_back(all_.on().spawn(stop(one->at)));
        break;
      case 3: {
        auto cuts = cut_network(one->at.self().id, other->at.self().id);
        co_await std::move(cuts);
        break;
      }
      case 4:
        all_.in.set_database_away(true);
        co_await sleep_for(up_to(1'200ms));
        all_.in.set_database_away(false);
        break;
      case loses_leases: {
        auto loses = lose_leases_while_commits_are_slow(one->at);
        co_await std::move(loses);
        break;
      }
      default: {
        auto cuts = cut_off_from_database(one->at);
        co_await std::move(cuts);
      }
    }
    co_await sleep_for(up_to(400ms));
  }
  static task<> stop(node one) { co_await one.stop(); }
  task<> cut_network(std::string one, std::string other) {
    auto network = all_.in.network();
    switch (below(3)) {
      case 0:
        network.cut(one, other);
        break;
      case 1:
        network.cut_one_way(one, other);
        break;
      default:
        network.cut_off(one);
    }
    co_await sleep_for(up_to(1'500ms));
    network.heal();
  }
  // The leases, the actors, or both.
  task<> cut_off_from_database(node one) {
    const cluster::simulation::parts& its = all_.in.its_parts();
    durable::simulated_database actors = its.database;
    const std::string id = one.self().id;
    const std::uint64_t what = below(3);
    if (what != 0) its.leases.set_cut_off(id, true);
    if (what != 1) actors.set_cut_off(id, true);
    co_await sleep_for(up_to(2'500ms));
    its.leases.set_cut_off(id, false);
    actors.set_cut_off(id, false);
  }

  // So that commits are under way when the lease ends, and others have the actors when they come.
  task<> lose_leases_while_commits_are_slow(node one) {
    const cluster::simulation::parts& its = all_.in.its_parts();
    durable::simulated_database actors = its.database;
    const std::string id = one.self().id;
    its.leases.set_cut_off(id, true);
    co_await sleep_for(300ms);
    actors.set_faults({.refuses = 0, .loses = 0, .delay_max = 1s});
    co_await sleep_for(500ms);
    actors.set_faults({.refuses = 40, .loses = 40, .delay_max = 3ms});
    co_await sleep_for(700ms + up_to(1s));
    its.leases.set_cut_off(id, false);
  }

  bool is_balanced() const {
    const auto nodes = all_.living();
    const std::size_t least = durable::shard_count / nodes.size();
    return std::ranges::all_of(nodes, [&](const life_ref& one) {
      const auto counts = one->at.counts();
      return counts.members == nodes.size() && counts.shards >= least && counts.shards <= least + 1;
    });
  }
  // A lease runs out in a second, and drains take up to 800 ms.
  task<> rest() {
    for (int i = 0; i < 100 && !is_balanced(); ++i) co_await sleep_for(50ms);
    if (is_balanced()) co_return;
    std::string has;
    for (const life_ref& one : all_.living())
      has += " " + std::to_string(one->at.counts().shards) + " of " +
             std::to_string(one->at.counts().members);
    all_.complain("after the troubles the shards are not balanced:" + has);
  }
  // After faults engines wait for up to 10 s before they try again.
  task<> until_all_is_handled() {
    const durable::simulated_database& actors = all_.in.its_parts().database;
    const auto is_handled = [&] { return actors.dump().find("\ninbox ") == std::string::npos; };
    for (int i = 0; i < 300 && !is_handled(); ++i) co_await sleep_for(100ms);
    if (!is_handled()) all_.complain("messages are left in the inbox");
    const std::string rows = actors.dump();
    const std::size_t dead = rows.find("\ndead ");
    if (dead != std::string::npos) all_.complain(rows.substr(dead + 1, 200));
  }
  task<> end() {
    for (const life_ref& one : all_.living()) {
      co_await one->at.stop();
    }
  }

  fleet all_;
  clients asks_;
  std::vector<future<>> stops_;
  const bool seeks_late_commits_;
};

struct totals {
  std::size_t asked = 0, answered = 0;
};

std::string what_is_wrong(std::uint64_t seed, mistake made, totals& sum) {
  runtime rt({.policy = policy::simulated, .seed = seed});
  // Made in the task, where the seed chooses.
  const auto all = [&]() -> task<std::string> {
    troubles some(rt, made);
    auto runs = some.run();
    std::string wrong = co_await std::move(runs);
    sum.asked += some.asked();
    sum.answered += some.answered();
    co_return wrong;
  };
  future<std::string> result = rt.spawn(all());
  rt.run();
  return result.get();
}

TEST(whole_nodes, histories_are_linearizable_and_nothing_hangs_whatever_fails) {
  totals sum;
  for_each_seed(chosen_seeds(slow ? 20 : 200), [&sum](std::uint64_t seed) {
    EXPECT_EQ(what_is_wrong(seed, mistake::none, sum), "");
  });
  std::cout << sum.asked << " asks, of which " << sum.answered << " were answered\n";
  EXPECT_GT(sum.answered, sum.asked / 2);
}

// 901: an ask that was told that it had not run was still in the inbox, and ran later.
TEST(whole_nodes, what_seeds_have_found_stays_mended) {
  totals sum;
  for (const std::uint64_t known : {901u}) {
    for_each_seed(seeds_from(known, 1), [&sum](std::uint64_t seed) {
      EXPECT_EQ(what_is_wrong(seed, mistake::none, sum), "");
    });
  }
}

TEST(whole_nodes, nodes_whose_commits_look_at_no_fence_are_found) {
  totals sum;
  expect_found([&sum](std::uint64_t seed) { return what_is_wrong(seed, mistake::no_fence, sum); });
}

}  // namespace
}  // namespace troupe::test
