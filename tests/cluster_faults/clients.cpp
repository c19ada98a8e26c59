#include "cluster_faults/clients.hpp"

#include <exception>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "troupe/database/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::message_id;

struct verdict {
  ending how;
  std::string name;
};

verdict verdict_of(const cluster::error& failed) {
  using enum cluster::failure;
  const std::string name = cluster::name_of(failed.kind());
  switch (failed.kind()) {
    case lost:
      return {ending::unknown, name};
    case unreachable:
    case full:
    case stopped:
      return {ending::not_run, name};
    default:
      return {ending::unknown, "wrong: " + name + ": " + failed.what()};
  }
}

// What the documentation says of each failure.
verdict verdict_of(const std::exception_ptr& failed, bool has_id) {
  try {
    std::rethrow_exception(failed);
  } catch (const cluster::error& known) {
    return verdict_of(known);
  } catch (const timed_out&) {
    return {ending::unknown, "timed_out"};
  } catch (const durable::shard_moved& known) {
    return known.is_stored() ? verdict{ending::unknown, "moved_stored"}
                             : verdict{ending::not_run, "moved"};
  } catch (const durable::store_full&) {
    // That the message waits in the store already is told in the same way.
    return {has_id ? ending::unknown : ending::not_run, "store_full"};
  } catch (const database::error& known) {
    const bool is_none = known.effect() == database::effect::none;
    return {is_none ? ending::not_run : ending::unknown,
            std::string("database_") + database::name_of(known.kind()) + (is_none ? "" : "?")};
  } catch (const std::exception& known) {
    return {ending::unknown, std::string("wrong: ") + known.what()};
  }
}

}  // namespace

clients::clients(client_options chosen, const std::string& history)
    : chosen_(chosen), history_(history) {}

std::int64_t clients::period_now() const {
  return (monotonic_ns() - chosen_.begun_ns) / std::chrono::nanoseconds(chosen_.period).count();
}
std::string clients::key_of(std::int64_t period, std::uint64_t number) const {
  return std::to_string(period) + '.' + std::to_string(number);
}

task<clients::outcome> clients::attempt(durable::ref<Register> of, operation what, bool has_id) {
  std::exception_ptr failed;
  try {
    outcome got{ending::done, 0, "done"};
    if (what.what == act::read) {
      auto reads = with_deadline(chosen_.attempt, [of] { return of.ask<&Register::read>(); });
      got.value = co_await std::move(reads);
    } else if (what.what == act::write) {
      auto writes = with_deadline(chosen_.attempt,
                                  [of, what] { return of.ask<&Register::write>(what.first); });
      co_await std::move(writes);
    } else {
      auto swaps = with_deadline(
          chosen_.attempt, [of, what] { return of.ask<&Register::swap>(what.first, what.second); });
      got.value = co_await std::move(swaps) ? 1 : 0;
    }
    co_return got;
  } catch (...) {
    failed = std::current_exception();
  }
  const verdict known = verdict_of(failed, has_id);
  co_return outcome{known.how, 0, known.name};
}

// `again`: under one id, until it is known what has become of it.
task<clients::outcome> clients::perform(durable::ref<Register> of, operation what, bool again) {
  if (!again) {
    auto once = attempt(std::move(of), what, false);
    co_return co_await std::move(once);
  }
  const durable::ref<Register> named = of.with_id(message_id::random());
  ending worst = ending::not_run;
  for (;;) {
    auto tries = attempt(named, what, true);
    const outcome got = co_await std::move(tries);
    if (got.how == ending::done || got.words.starts_with("wrong")) co_return got;
    if (got.how == ending::unknown) worst = ending::unknown;
    if (ends_) co_return outcome{worst, 0, got.words};
    co_await sleep_for(50ms);  // sleeps: between attempts
  }
}

task<> clients::run_one(clients& self, cluster::node on, int client) {
  const client_options& chosen = self.chosen_;
  std::minstd_rand random(std::random_device{}());
  std::map<std::string, std::int64_t> seen;  // by register
  std::int64_t period = -1;
  while (!self.ends_) {
    if (self.period_now() != period) seen.clear();
    period = self.period_now();
    const std::string key = self.key_of(period, random() % static_cast<std::uint64_t>(chosen.keys));
    const auto dice = random() % 20;
    operation what{dice < 8 ? act::read : dice < 15 ? act::write : act::swap};
    const std::int64_t fresh = (chosen.number << 32) + ++self.last_value_;
    if (what.what == act::write) what.first = fresh;
    if (what.what == act::swap) what.first = seen[key], what.second = fresh;
    const std::uint64_t id = self.history_.begin(key, what.what, what.first, what.second);
    auto performs = self.perform(on.get_durable<Register>(key), what, client % 2 == 1);
    const outcome got = co_await std::move(performs);
    self.history_.end(id, got.how, got.value, got.words);
    if (got.how == ending::done && what.what == act::read) seen[key] = got.value;
    if (got.how == ending::done && what.what != act::read && got.value == (what.what == act::swap))
      seen[key] = fresh;
    std::uniform_int_distribution<std::int64_t> pauses(0, 2 * chosen.pause.count());
    co_await sleep_for(std::chrono::milliseconds(pauses(random)));  // sleeps: clients think
  }
}

task<> clients::run(cluster::node on) {
  std::vector<future<>> all;
  for (int i = 0; i < chosen_.clients; ++i) all.push_back(spawn(run_one(*this, on, i)));
  for (future<>& one : all) co_await std::move(one);
}

task<> clients::read_all(cluster::node on) {
  for (std::int64_t period = 0; period <= period_now(); ++period) {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(chosen_.keys); ++i) {
      const std::string key = key_of(period, i);
      outcome got;
      while (got.how != ending::done) {
        const std::uint64_t id = history_.begin(key, act::read, 0, 0);
        auto reads = attempt(on.get_durable<Register>(key), {act::read}, false);
        got = co_await std::move(reads);
        history_.end(id, got.how, got.value, got.words);
        if (got.how != ending::done) co_await sleep_for(20ms);  // sleeps: between attempts
      }
    }
  }
}

}  // namespace troupe::test
