#include "cluster/node/node_state.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// For a server that is reachable: it answers at once. A lost server is not waited for.
task<> within_a_moment(task<> call) {
  constexpr milliseconds at_most{2'000};
  try {
    auto limited = with_deadline(at_most, std::move(call));
    co_await std::move(limited);
  } catch (const troupe::error&) {
  }
}

}  // namespace

node_state::node_state(runtime& on, options chosen, setup with)
    : core_(on, std::move(chosen), std::move(with)),
      members_(on),
      actors_(core_),
      durable_(core_, members_),
      inbound_(core_, durable_),
      outbound_(core_, actors_, members_, inbound_),
      topics_(core_) {}
node_state::~node_state() = default;

void node_state::begin(node_means with) {
  std::unique_ptr<durable::storage> storage = std::move(with.storage);
  core_.begin(std::move(with), weak_from_this(), hooks());
  if (!core_.with().durable_kinds.empty()) durable_.open(std::move(storage));
  show();
  const outside_calls none;
  static_cast<void>(core_.on().spawn(join(shared_from_this())));
}

// ---- joining ----

task<> node_state::take_changes() {
  const auto hears = [weak = weak_from_this()](incoming) -> task<> {
    if (const state_ref self = weak.lock(); self != nullptr && self->core_.stage().has_joined())
      self->core_.owners().hurry();
    co_return;
  };
  auto takes = core_.way().take(core_.changes_subject(), {}, hears);
  co_await std::move(takes);
}

task<> node_state::attempt_to_join(join_progress& done) {
  if (!done.takes_own) {
    auto takes = inbound_.open();
    co_await std::move(takes);
    done.takes_own = true;
  }
  if (!done.takes_common) {
    auto takes = take_changes();
    co_await std::move(takes);
    done.takes_common = true;
  }
  if (!done.has_store) {
    auto opens = durable_.open_store();
    co_await std::move(opens);
    done.has_store = true;
  }
  auto starts = core_.owners().start();
  co_await std::move(starts);
}

// Again and again, until it has joined or was stopped.
task<> node_state::join(state_ref self) {
  constexpr milliseconds pause{500};
  node_core& core = self->core_;
  join_progress done{core.is_alone(), core.is_alone(), !self->durable_.is_open()};
  while (!core.stage().is_leaving()) {
    std::exception_ptr failed;
    try {
      auto attempts = self->attempt_to_join(done);
      co_await std::move(attempts);
    } catch (...) {
      failed = std::current_exception();
    }
    core.owners().set_failure(failed);
    if (failed == nullptr) {
      self->begin_sweeps();
      if (!core.stage().join()) break;
      self->joined_or_failed_.set();
      co_return;
    }
    self->joined_or_failed_.set();
    core.owners().use(core.make_placement());
    co_await sleep_for(pause);
  }
  // It has been stopped while it was joining.
  self->sweeper_.cancel();
  core.owners().kill();
  self->joined_or_failed_.set();
}

void node_state::begin_sweeps() {
  const auto sweeps = [weak = weak_from_this()] {
    if (const state_ref self = weak.lock()) self->actors_.unload_idle();
  };
  const outside_calls none;
  const nanoseconds idle_max = core_.chosen().idle_max;
  const auto period = std::max<nanoseconds>(idle_max / 4, milliseconds(1));
  sweeper_ = core_.on().every(period, sweeps, {.weak = true});
}

task<> node_state::ready() {
  auto waits = joined_or_failed_.wait();
  co_await std::move(waits);
  if (const std::exception_ptr failed = core_.owners().failed()) std::rethrow_exception(failed);
}

// ---- leaving ----

// Handlers that run here continue until the shards are drained, and ask others meanwhile. Then
// nothing new is sent, and the sent messages are awaited.
task<> node_state::stop(state_ref self) {
  node_core& core = self->core_;
  if (!core.stage().begin_to_leave()) co_return;
  const time_span drain_max = core.chosen().drain_max;
  const std::int64_t until = core.ns_after(drain_max);
  if (core.stage().has_joined()) {
    self->sweeper_.cancel();
    auto rests = self->rest(core.ns_after(drain_max / 4));
    co_await std::move(rests);
    auto leaves = core.owners().stop(nanoseconds(std::max<std::int64_t>(until - core.now_ns(), 0)));
    co_await std::move(leaves);
    self->actors_.close(own_shard);
    auto rests_at_last = self->rest(until);
    co_await std::move(rests_at_last);
  } else {
    core.owners().kill();
  }
  core.stage().end();
  self->lose_all();
  self->end_watchers();
  auto ends = self->end_way(until);
  co_await std::move(ends);
  self->joined_or_failed_.set();
}

task<> node_state::end_way(std::int64_t until_ns) {
  constexpr milliseconds answers_travel{20};
  while (core_.traffic().waiting.load(relaxed) != 0 && core_.now_ns() < until_ns)
    co_await sleep_for(milliseconds(2));
  // A node that has asked this node meanwhile still gets the answer that the actor is no longer
  // here.
  constexpr int pauses_max = 50;
  auto leaves = within_a_moment(core_.way().leave(core_.subject_of(core_.self().id), {}));
  co_await std::move(leaves);
  co_await sleep_for(answers_travel);
  for (int i = 0; i < pauses_max && !core_.has_sent_answers(); ++i)
    co_await sleep_for(answers_travel);
  auto closes = within_a_moment(core_.way().close(false));
  co_await std::move(closes);
  auto ends = core_.way().close(true);
  co_await std::move(ends);
}

task<> node_state::rest(std::int64_t until_ns) {
  while (!actors_.is_at_rest(own_shard) && core_.now_ns() < until_ns)
    co_await sleep_for(milliseconds(2));
}

void node_state::end_watchers() noexcept {
  members_.close();
  topics_.close();
}

void node_state::kill() noexcept {
  core_.stage().end();
  static_cast<void>(core_.way().close(true));
  sweeper_.cancel();
  core_.owners().kill();
  actors_.kill();
  lose_all();
  end_watchers();
}

void node_state::let_go() noexcept {
  actors_.let_go();
  end_watchers();
}

// ---- shards that come and go ----

void node_state::tell_others() noexcept {
  core_.start_quietly([this] { return core_.way().send(core_.changes_subject(), "-"); });
}

placement::hooks node_state::hooks() {
  placement::hooks told;
  const std::weak_ptr<node_state> weak_self = weak_from_this();
  told.gained = [weak_self](const std::vector<held_shard>& shards) {
    if (const state_ref self = weak_self.lock()) self->gained(shards);
  };
  told.lost = [weak_self](const std::vector<std::uint32_t>& shards) {
    if (const state_ref self = weak_self.lock()) self->lost(shards);
  };
  told.drain = [weak_self](std::vector<held_shard> shards, placement::release released) -> task<> {
    const state_ref self = weak_self.lock();
    if (self == nullptr) co_return;
    auto drains = self->drain(std::move(shards), std::move(released));
    co_await std::move(drains);
  };
  told.members = [weak_self](std::vector<member_row> now) {
    if (const state_ref self = weak_self.lock()) self->members_.change(std::move(now));
  };
  told.changed = [weak_self] {
    if (const state_ref self = weak_self.lock()) self->tell_others();
  };
  return told;
}

void node_state::gained(const std::vector<held_shard>& shards) {
  for (const held_shard& shard : shards) actors_.open(shard);
  durable_.gained(shards);
}

void node_state::lost(const std::vector<std::uint32_t>& shards) {
  for (const std::uint32_t shard : shards) actors_.close(shard);
  durable_.lost(shards);
}

void node_state::lose_all() {
  std::vector<std::uint32_t> all(shard_count);
  std::iota(all.begin(), all.end(), 0);
  lost(all);
  actors_.close(own_shard);
}

// Each shard goes when it is at rest. Until then it is open, since handlers that run here may ask
// its actors, perhaps by way of other nodes; a shard that never comes to rest is closed after a
// while.
task<> node_state::drain(std::vector<held_shard> shards, placement::release released) {
  constexpr milliseconds pause_most{20};
  const nanoseconds at_most =
      std::min<nanoseconds>(this_call::remaining(), core_.chosen().drain_max);
  const std::int64_t closes_at = core_.ns_after(at_most / 4);
  std::ranges::sort(shards);
  for (milliseconds pause{1};; pause = std::min(2 * pause, pause_most)) {
    const std::vector<held_shard> resting = hand_over(shards, core_.now_ns() >= closes_at);
    std::erase_if(shards, [&](const held_shard& shard) {
      return std::ranges::binary_search(resting, shard);
    });
    if (shards.empty()) break;
    if (!resting.empty()) released(resting);
    co_await sleep_for(pause);
  }
  // The node's answers should arrive before the notice that it has left.
  if (!core_.stage().is_leaving()) co_return;
  constexpr int looks_max = 200;
  for (int i = 0; i < looks_max && !core_.has_sent_answers(); ++i)
    co_await sleep_for(milliseconds(1));
}

// Of shards in order. Returns those that are at rest, in order: they are closed now. Others are
// closed if `closes`.
std::vector<held_shard> node_state::hand_over(const std::vector<held_shard>& shards, bool closes) {
  std::vector<held_shard> resting;
  for (const held_shard& shard : shards) {
    if (actors_.begin_hand_over(shard, closes)) resting.push_back(shard);
  }
  const std::vector<held_shard> done = durable_.hand_over(resting, closes);
  for (const held_shard& shard : resting) {
    const bool goes = std::ranges::binary_search(done, shard);
    if (goes || !closes) actors_.end_hand_over(shard, goes);
  }
  return done;
}

}  // namespace troupe::cluster::parts
