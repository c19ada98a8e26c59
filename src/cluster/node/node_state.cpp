#include "cluster/node/node_state.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <numeric>
#include <utility>

#include "cluster/transport/windows.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

void check(const options& chosen) {
  const auto need = [](bool holds, const char* what) {
    if (!holds) throw option_error(std::string("troupe: cluster: ") + what);
  };
  need(chosen.nats.empty() == chosen.database.empty(),
       "a node that is not alone needs both servers of NATS and a database");
  need(chosen.database != parts::sqlite_database && chosen.database != "sqlite::memory:",
       "`sqlite:` in options::database is followed by the path of a file, which all nodes share");
  need(!chosen.cluster.empty() && std::ranges::all_of(chosen.cluster,
                                                      [](unsigned char c) {
                                                        return std::isalnum(c) != 0 || c == '-' ||
                                                               c == '_';
                                                      }),
       "the name of a cluster has letters, digits, `-` and `_`");
  need(chosen.ask_timeout.count() > 0, "ask_timeout must be more than 0");
  need(chosen.lease >= milliseconds(1'000) && chosen.lease <= std::chrono::hours(24),
       "lease must be 1 s to 24 hours");
  need(chosen.margin.count() >= 0 && chosen.margin < chosen.lease / 2,
       "margin must be 0 or more, and less than half of the lease");
  need(chosen.idle_max.count() > 0, "idle_max must be more than 0");
  need(chosen.actors_max > 0, "actors_max must be 1 or more");
  need(chosen.waiting_max > 0, "waiting_max must be 1 or more");
  need(chosen.served_max > 0, "served_max must be 1 or more");
  need(chosen.drain_max.count() >= 0, "drain_max must be 0 or more");
}

void check(const setup& with) {
  const auto check_name = [](const std::string& name) {
    if (name.size() > name_bytes_max)
      throw option_error("troupe: cluster: the name of a class or method has " +
                         std::to_string(name.size()) + " bytes, and at most " +
                         std::to_string(name_bytes_max) + " travel between nodes");
  };
  for (const class_table& kind : with.kinds) {
    check_name(kind.name);
    const auto same = [&kind](const class_table& other) {
      return other.name == kind.name || other.tag == kind.tag;
    };
    if (std::ranges::count_if(with.kinds, same) > 1)
      throw option_error("troupe: cluster: two classes have the name " + kind.name);
    for (const method_entry& method : kind.methods) {
      check_name(method.name);
      if (std::ranges::count(kind.methods, method.name, &method_entry::name) > 1)
        throw option_error("troupe: cluster: two methods of the class " + kind.name +
                           " have the name " + method.name);
    }
  }
}

constexpr std::size_t events_kept = 4'096;

// How long an answer may be under way: of a node whose lease has run out, and of one that has left
// in good order, which has answered all that it was asked.
constexpr milliseconds answers_of_the_dead{250}, answers_of_who_left{2'000};

// N2
bool rests(const shard_state& state) {
  return std::ranges::all_of(state.actors,
                             [](const auto& entry) { return entry.second.use_count() == 1; });
}

// What a server that is there does at once. One that has gone is not waited for.
task<> within_a_moment(task<> what) {
  constexpr milliseconds at_most{2'000};
  try {
    auto limited = with_deadline(at_most, std::move(what));
    co_await std::move(limited);
  } catch (const troupe::error&) {
  }
}

// Nobody waits for it.
task<> run_quietly(std::function<task<>()> makes) {
  try {
    auto runs = makes();
    co_await std::move(runs);
  } catch (const troupe::error&) {
  }
}

}  // namespace

void check_key(std::string_view key) {
  if (key.size() > name_bytes_max)
    throw usage_error("troupe: cluster: a key has " + std::to_string(key.size()) +
                      " bytes, and at most " + std::to_string(name_bytes_max) +
                      " travel between nodes; choose shorter keys");
}

node_state::node_state(runtime& on, options chosen, setup with)
    : on_(on),
      chosen_(std::move(chosen)),
      with_(std::move(with)),
      self_{durable::message_id::random().to_string(), chosen_.name},
      may_serve_(std::make_shared<semaphore>(chosen_.served_max)) {
  check(chosen_);
  check(with_);
  shards_[own_shard].is_open = true;
}
node_state::~node_state() = default;

void node_state::begin(surroundings with) {
  window_options how_much;
  how_much.prefix = subject_of("");
  way_ = windowed(on_, std::move(with.way), how_much);
  is_alone_ = with.is_alone;
  if (!with_.durable_kinds.empty()) open_engine(std::move(with.storage));
  make_leases_ = std::move(with.leases);
  clock_ = std::move(with.clock);
  placement_ = make_placement();
  show();
  const outside_calls none;
  static_cast<void>(on_.spawn(join(shared_from_this())));
}

std::unique_ptr<placement> node_state::make_placement() {
  placement_options how;
  how.lease = is_alone_ ? forever : std::chrono::ceil<milliseconds>(chosen_.lease);
  how.margin = std::chrono::ceil<milliseconds>(chosen_.margin);
  how.drain_max = chosen_.drain_max;
  how.clock = clock_;
  return std::make_unique<placement>(on_, make_leases_(), chosen_.cluster,
                                     member_row{self_.id, self_.name}, std::move(how), hooks());
}

// A placement that could not be started is of no use any more.
void node_state::replace_placement() {
  auto next = make_placement();
  std::lock_guard held(mutex_);
  placement_->kill();
  placement_.swap(next);
}

// After a failure it goes on where it was: what is taken twice would be handled twice.
task<> node_state::open_way(bool& takes_own) {
  const std::weak_ptr<node_state> weak_self = weak_from_this();
  const auto take_one = [weak_self](incoming one) -> task<> {
    const state_ref self = weak_self.lock();
    if (self == nullptr) co_return;
    auto takes = self->take(std::move(one));
    co_await std::move(takes);
  };
  const auto take_now = [weak_self](const incoming& one) {
    const state_ref self = weak_self.lock();
    return self != nullptr && self->take_now(one);
  };
  if (!takes_own) {
    auto own = way_->take(subject_of(self_.id), {}, transport::taker(take_one, take_now));
    co_await std::move(own);
    takes_own = true;
  }
  const auto hears = [weak_self](incoming) -> task<> {
    if (const state_ref self = weak_self.lock(); self != nullptr && self->has_joined_)
      self->placement_->hurry();
    co_return;
  };
  auto common = way_->take("troupe." + chosen_.cluster + ".changes", {}, hears);
  co_await std::move(common);
}

// Again and again, until it has joined or was stopped.
task<> node_state::join(state_ref self) {
  constexpr milliseconds pause{500};
  bool takes_own = false, has_way = self->is_alone_, has_store = self->engine_ == nullptr;
  while (!self->is_leaving_) {
    std::exception_ptr failed;
    try {
      if (!has_way) {
        auto opens = self->open_way(takes_own);
        co_await std::move(opens);
        has_way = true;
      }
      if (!has_store) {
        // Its tables stand beside those of the leases.
        const auto leases = self->make_leases_();
        auto opens_leases = leases->open(self->chosen_.cluster);
        co_await std::move(opens_leases);
        auto opens = self->engine_->open();
        co_await std::move(opens);
        has_store = true;
      }
      auto starts = self->placement_->start();
      co_await std::move(starts);
    } catch (...) {
      failed = std::current_exception();
    }
    {
      std::lock_guard held(self->mutex_);
      self->failed_ = failed;
    }
    if (failed == nullptr) self->has_joined_ = true;
    self->joined_or_failed_.set();
    if (failed == nullptr) break;
    self->replace_placement();
    co_await sleep_for(pause);
  }
  if (self->is_leaving_) {
    // It has been stopped while it was joining.
    std::lock_guard held(self->mutex_);
    self->placement_->kill();
    co_return;
  }
  const std::weak_ptr<node_state> weak_self = self;
  const auto sweeps = [weak_self] {
    if (const state_ref node = weak_self.lock()) node->put_away_idle();
  };
  const outside_calls none;
  const auto period = std::max<nanoseconds>(self->chosen_.idle_max / 4, milliseconds(1));
  self->sweeper_ = self->on_.every(period, sweeps, {.weak = true});
}

task<> node_state::ready() {
  auto waits = joined_or_failed_.wait();
  co_await std::move(waits);
  if (has_joined_) co_return;
  std::lock_guard held(mutex_);
  if (failed_ != nullptr) std::rethrow_exception(failed_);
}

// What runs here goes on until the shards are drained, and asks others meanwhile. Then nothing new
// is sent, and what was sent is waited for.
task<> node_state::stop(state_ref self) {
  if (self->is_leaving_.exchange(true)) co_return;
  const time_span drain_max = self->chosen_.drain_max;
  const std::int64_t until = self->ns_after(drain_max);
  self->sweeper_.cancel();
  if (self->has_joined_) {
    auto rests = self->rest(self->ns_after(drain_max / 4));
    co_await std::move(rests);
    auto leaves =
        self->placement_->stop(nanoseconds(std::max<std::int64_t>(until - self->now_ns(), 0)));
    co_await std::move(leaves);
    self->close(own_shard);
    auto rests_at_last = self->rest(until);
    co_await std::move(rests_at_last);
  } else {
    std::lock_guard held(self->mutex_);
    self->placement_->kill();
  }
  self->is_stopped_ = true;
  self->lose_all();
  self->end_watchers();
  constexpr milliseconds answers_travel{20};
  while (self->counts_.waiting.load(relaxed) != 0 && self->now_ns() < until)
    co_await sleep_for(milliseconds(2));
  // Who has asked this node meanwhile is still told that it has the actor no more.
  constexpr int pauses_max = 50;
  auto leaves_way = within_a_moment(self->way_->leave(self->subject_of(self->self_.id), {}));
  co_await std::move(leaves_way);
  co_await sleep_for(answers_travel);
  for (int i = 0; i < pauses_max && self->answering_ != 0; ++i) co_await sleep_for(answers_travel);
  auto closes = within_a_moment(self->way_->close(false));
  co_await std::move(closes);
  auto ends = self->way_->close(true);
  co_await std::move(ends);
  self->joined_or_failed_.set();
}

// Until no actor that only this node has is at work.
task<> node_state::rest(std::int64_t until_ns) {
  const auto is_at_rest = [this] {
    std::lock_guard held(shards_[own_shard].mutex);
    return rests(shards_[own_shard]);
  };
  while (!is_at_rest() && now_ns() < until_ns) co_await sleep_for(milliseconds(2));
}

void node_state::end_watchers() noexcept {
  std::vector<channel<member_event>> watchers;
  std::map<topic_name, topic> topics;
  {
    std::lock_guard held(mutex_);
    watchers.swap(watchers_);
    topics.swap(topics_);
  }
  for (const auto& watcher : watchers) watcher.close();
  for (const auto& [name, topic] : topics) {
    for (const auto& reader : topic.readers) reader->close();
  }
}

void node_state::kill() noexcept {
  is_leaving_ = is_stopped_ = true;
  static_cast<void>(way_->close(true));
  sweeper_.cancel();
  {
    std::lock_guard held(mutex_);
    placement_->kill();
  }
  for (shard_state& state : shards_) {
    std::lock_guard held(state.mutex);
    for (const auto& [name, actor] : state.actors) actor->end();
  }
  lose_all();
  end_watchers();
}

void node_state::let_go() noexcept {
  for (shard_state& state : shards_) {
    decltype(state.actors) gone;
    std::lock_guard held(state.mutex);
    state.is_open = false;
    gone.swap(state.actors);
  }
  end_watchers();
}

void node_state::quietly(std::function<task<>()> makes) noexcept {
  try {
    const outside_calls none;
    static_cast<void>(on_.spawn(run_quietly(std::move(makes))));
  } catch (...) {
    // Without memory it does not happen.
  }
}

// So that they look at once at who owns what.
void node_state::tell_others() noexcept {
  quietly([self = shared_from_this()] {
    return self->way_->send("troupe." + self->chosen_.cluster + ".changes", "-");
  });
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
    if (const state_ref self = weak_self.lock()) self->changed(std::move(now));
  };
  told.changed = [weak_self] {
    if (const state_ref self = weak_self.lock()) self->tell_others();
  };
  return told;
}

void node_state::gained(const std::vector<held_shard>& shards) {
  for (const held_shard& shard : shards) {
    std::lock_guard held(shards_[shard.shard].mutex);
    shards_[shard.shard].is_open = true;
    shards_[shard.shard].fence = shard.fence;
  }
  if (has_shared_store()) engine_->gained(shards);
}

void node_state::lost(const std::vector<std::uint32_t>& shards) {
  for (const std::uint32_t shard : shards) close(shard);
  if (has_shared_store()) engine_->lost(shards);
}

void node_state::lose_all() {
  std::vector<std::uint32_t> all(shard_count);
  std::iota(all.begin(), all.end(), 0);
  lost(all);
  close(own_shard);
}

// What waits in the mailboxes of its actors is refused when its turn comes.
void node_state::close(std::uint32_t shard) noexcept {
  decltype(shard_state::actors) gone;
  std::lock_guard held(shards_[shard].mutex);
  shards_[shard].is_open = false;
  gone.swap(shards_[shard].actors);
  counts_.actors.fetch_sub(gone.size(), relaxed);
}

// Each shard goes when it is at rest. Until then it is open, since what runs here may ask its
// actors, on the way over other nodes, too; those that never come to rest are closed after a while.
task<> node_state::drain(std::vector<held_shard> shards, placement::release released) {
  constexpr milliseconds pause_most{20};
  const nanoseconds at_most = std::min<nanoseconds>(this_call::remaining(), chosen_.drain_max);
  const std::int64_t closes_at = ns_after(at_most / 4);
  std::ranges::sort(shards);
  for (milliseconds pause{1};; pause = std::min(2 * pause, pause_most)) {
    const std::vector<held_shard> resting = hand_over(shards, now_ns() >= closes_at);
    std::erase_if(shards,
                  [&](const held_shard& one) { return std::ranges::binary_search(resting, one); });
    if (shards.empty()) break;
    if (!resting.empty()) released(resting);
    co_await sleep_for(pause);
  }
  // When the others hear that a node has left, its answers should be with them.
  if (!is_leaving_) co_return;
  constexpr int looks_max = 200;
  for (int i = 0; i < looks_max && answering_ != 0; ++i) co_await sleep_for(milliseconds(1));
}

// Of shards in order. Returns those that are at rest, in order: they are closed now. Others are
// closed if `closes`.
std::vector<held_shard> node_state::hand_over(const std::vector<held_shard>& shards, bool closes) {
  std::vector<held_shard> resting;
  for (const held_shard& shard : shards) {
    shard_state& state = shards_[shard.shard];
    std::lock_guard held(state.mutex);
    const bool was_lost = state.fence != shard.fence;  // and has perhaps come back
    const bool is_at_rest = rests(state);
    if (was_lost || is_at_rest) resting.push_back(shard);
    if (!was_lost && (is_at_rest || closes)) state.is_open = false;
  }
  const std::vector<held_shard> done =
      has_shared_store() ? engine_->hand_over(resting, closes) : resting;
  for (const held_shard& one : resting) {
    const bool is_done = std::ranges::binary_search(done, one);
    if (is_done || !closes) end_look(one, is_done);
  }
  return done;
}

// It was closed for a look at its durable actors: it goes, or is open again.
void node_state::end_look(const held_shard& shard, bool goes) noexcept {
  decltype(shard_state::actors) gone;
  shard_state& state = shards_[shard.shard];
  std::lock_guard held(state.mutex);
  if (state.fence != shard.fence) return;
  state.is_open = !goes;
  if (!goes) return;
  gone.swap(state.actors);
  counts_.actors.fetch_sub(gone.size(), relaxed);
}

void node_state::changed(std::vector<member_row> now) {
  std::vector<channel<member_event>> watchers;
  std::vector<std::stop_source> ended, left;
  std::vector<member_event> events;
  {
    std::lock_guard held(mutex_);
    const auto add = [&events](const std::vector<member_row>& these,
                               const std::vector<member_row>& others, bool joined) {
      for (const member_row& row : these) {
        if (!std::ranges::binary_search(others, row))
          events.push_back({joined, {row.id, row.name}});
      }
    };
    for (member_row& row : now) {
      if (std::exchange(row.is_leaving, false)) leaving_.insert(row.id);  // it is still there
    }
    std::ranges::sort(now);
    add(members_, now, false);
    add(now, members_, true);
    members_ = std::move(now);
    watchers = watchers_;
    for (const member_event& event : events) {
      if (event.joined) continue;
      const bool has_left = leaving_.erase(event.who.id) != 0;
      if (auto end = ends_.extract(event.who.id))
        (has_left ? left : ended).push_back(std::move(end.mapped()));
    }
  }
  end_later(std::move(ended), answers_of_the_dead);
  end_later(std::move(left), answers_of_who_left);
  for (const auto& watcher : watchers) {
    for (const member_event& one : events) static_cast<void>(watcher.try_send(one));
  }
}

// The asks that are on their way to members that have gone, since their answers may be, too.
void node_state::end_later(std::vector<std::stop_source> asks, milliseconds pause) {
  if (asks.empty()) return;
  const auto ends = [all = std::move(asks)]() mutable {
    for (auto& ask : all) ask.request_stop();
  };
  const outside_calls none;
  static_cast<void>(on_.after(pause, ends, {.weak = true}));
}

channel<member_event> node_state::watch_members() {
  const auto events = channel<member_event>::bounded(events_kept);
  std::lock_guard held(mutex_);
  for (const member_row& row : members_)
    static_cast<void>(events.try_send(member_event{true, {row.id, row.name}}));
  watchers_.push_back(events);
  return events;
}

std::vector<cluster::member> node_state::members_now() const {
  std::lock_guard held(mutex_);
  std::vector<cluster::member> all;
  for (const member_row& row : members_) all.push_back({row.id, row.name});
  return all;
}

bool node_state::owns(std::uint32_t shard, std::uint64_t fence) const noexcept {
  if (shard == own_shard) return true;
  return placement_->is_mine(shard) && placement_->fence(shard) == fence;
}

const class_table* node_state::find_kind(const void* tag) const noexcept {
  const auto found = std::ranges::find(with_.kinds, tag, &class_table::tag);
  return found == with_.kinds.end() ? nullptr : &*found;
}
const class_table* node_state::find_kind(std::string_view name) const noexcept {
  const auto found = std::ranges::find(with_.kinds, name, &class_table::name);
  return found == with_.kinds.end() ? nullptr : &*found;
}
const exception_entry* node_state::find_exception(const std::type_info& type) const noexcept {
  const auto found = std::ranges::find_if(
      with_.exceptions, [&](const exception_entry& entry) { return *entry.type == type; });
  return found == with_.exceptions.end() ? nullptr : &*found;
}
const exception_entry* node_state::find_exception(std::string_view name) const noexcept {
  const auto found = std::ranges::find(with_.exceptions, name, &exception_entry::name);
  return found == with_.exceptions.end() ? nullptr : &*found;
}

}  // namespace troupe::cluster::parts
