#include "cluster/node/node_state.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>

#include "cluster/transport/windows.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;

void check(const options& chosen) {
  const auto need = [](bool holds, const char* what) {
    if (!holds) throw option_error(std::string("troupe: cluster: ") + what);
  };
  need(chosen.nats.empty() == chosen.database.empty(),
       "a node that is not alone needs both servers of NATS and a database");
  need(!chosen.cluster.empty() && std::ranges::all_of(chosen.cluster,
                                                      [](unsigned char c) {
                                                        return std::isalnum(c) != 0 || c == '-' ||
                                                               c == '_';
                                                      }),
       "the name of a cluster has letters, digits, `-` and `_`");
  need(chosen.ask_timeout.count() > 0, "ask_timeout must be more than 0");
  need(chosen.lease >= milliseconds(1'000), "lease must be 1 s or more");
  need(chosen.margin.count() >= 0 && 2 * chosen.margin < chosen.lease,
       "margin must be 0 or more, and less than half of the lease");
  need(chosen.idle_max.count() > 0, "idle_max must be 1 ms or more");
  need(chosen.actors_max > 0, "actors_max must be 1 or more");
  need(chosen.waiting_max > 0, "waiting_max must be 1 or more");
  need(chosen.served_max > 0, "served_max must be 1 or more");
  need(chosen.drain_max.count() >= 0, "drain_max must be 0 or more");
}

void check(const setup& with) {
  for (const class_table& one : with.kinds) {
    const auto same = [&one](const class_table& other) {
      return other.name == one.name || other.tag == one.tag;
    };
    if (std::ranges::count_if(with.kinds, same) > 1)
      throw option_error("troupe: cluster: two classes have the name " + one.name);
    for (const method_entry& method : one.methods) {
      if (std::ranges::count(one.methods, method.name, &method_entry::name) > 1)
        throw option_error("troupe: cluster: two methods of the class " + one.name +
                           " have the name " + method.name);
    }
  }
}

constexpr std::size_t events_kept = 4'096;

// Nobody waits for it.
task<> run_quietly(std::function<task<>()> makes) {
  try {
    auto runs = makes();
    co_await std::move(runs);
  } catch (const troupe::error&) {
  }
}

}  // namespace

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
  placement_ = make_placement();
  const outside_calls none;
  static_cast<void>(on_.spawn(join(shared_from_this())));
}

std::unique_ptr<placement> node_state::make_placement() {
  placement_options how;
  how.lease = is_alone_ ? forever : chosen_.lease;
  how.margin = chosen_.margin;
  how.drain_max = chosen_.drain_max;
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

task<> node_state::open_way() {
  const std::weak_ptr<node_state> here = weak_from_this();
  const auto take_one = [here](incoming one) -> task<> {
    const state_ref self = here.lock();
    if (self == nullptr) co_return;
    auto takes = self->take(std::move(one));
    co_await std::move(takes);
  };
  auto own = way_->take(subject_of(self_.id), {}, take_one);
  co_await std::move(own);
  const auto hears = [here](incoming) -> task<> {
    if (const state_ref self = here.lock(); self != nullptr && self->has_joined_)
      self->placement_->hurry();
    co_return;
  };
  auto common = way_->take("troupe." + chosen_.cluster + ".changes", {}, hears);
  co_await std::move(common);
}

// Again and again, until it has joined or was stopped.
task<> node_state::join(state_ref self) {
  constexpr milliseconds pause{500};
  bool has_way = self->is_alone_, has_store = self->engine_ == nullptr;
  while (!self->is_stopped_) {
    std::exception_ptr failed;
    try {
      if (!has_way) {
        auto opens = self->open_way();
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
  if (self->is_stopped_) {
    // It has been stopped while it was joining.
    std::lock_guard held(self->mutex_);
    self->placement_->kill();
    co_return;
  }
  const std::weak_ptr<node_state> here = self;
  const auto sweeps = [here] {
    if (const state_ref node = here.lock()) node->put_away_idle();
  };
  const outside_calls none;
  const auto period = std::max<milliseconds>(self->chosen_.idle_max / 4, milliseconds(1));
  self->sweeper_ = self->on_.every(period, sweeps, {.weak = true});
}

task<> node_state::ready() {
  auto waits = joined_or_failed_.wait();
  co_await std::move(waits);
  if (has_joined_) co_return;
  std::lock_guard held(mutex_);
  if (failed_ != nullptr) std::rethrow_exception(failed_);
}

task<> node_state::stop(state_ref self) {
  if (self->is_stopped_.exchange(true)) co_return;
  self->sweeper_.cancel();
  if (self->has_joined_) {
    auto leaves = self->placement_->stop(self->chosen_.drain_max);
    co_await std::move(leaves);
  } else {
    std::lock_guard held(self->mutex_);
    self->placement_->kill();
  }
  for (std::uint32_t shard = 0; shard <= own_shard; ++shard) self->lost(shard);
  self->end_watchers();
  // Who has asked this node meanwhile is still told that it has the actor no more.
  constexpr milliseconds answers_travel{20};
  constexpr int pauses_max = 50;
  auto leaves_way = self->way_->leave(self->subject_of(self->self_.id), {});
  co_await std::move(leaves_way);
  co_await sleep_for(answers_travel);
  for (int i = 0; i < pauses_max && self->answering_ != 0; ++i) co_await sleep_for(answers_travel);
  auto closes = self->way_->close(false);
  co_await std::move(closes);
  self->joined_or_failed_.set();
}

void node_state::end_watchers() noexcept {
  std::vector<channel<member_event>> watchers;
  std::map<topic_name, topic> topics;
  {
    std::lock_guard held(mutex_);
    watchers.swap(watchers_);
    topics.swap(topics_);
  }
  for (const auto& one : watchers) one.close();
  for (const auto& [name, its] : topics) {
    for (const auto& reader : its.readers) reader->close();
  }
}

void node_state::kill() noexcept {
  is_stopped_ = true;
  static_cast<void>(way_->close(true));
  sweeper_.cancel();
  {
    std::lock_guard held(mutex_);
    placement_->kill();
  }
  for (shard_state& of : shards_) {
    std::lock_guard held(of.mutex);
    for (const auto& [name, one] : of.actors) one->end();
  }
  for (std::uint32_t shard = 0; shard <= own_shard; ++shard) lost(shard);
  end_watchers();
}

void node_state::let_go() noexcept {
  for (shard_state& of : shards_) {
    decltype(of.actors) gone;
    std::lock_guard held(of.mutex);
    of.is_open = false;
    gone.swap(of.actors);
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
  const std::weak_ptr<node_state> here = weak_from_this();
  told.gained = [here](std::uint32_t shard, std::uint64_t fence) {
    if (const state_ref self = here.lock()) self->gained(shard, fence);
  };
  told.lost = [here](std::uint32_t shard) {
    if (const state_ref self = here.lock()) self->lost(shard);
  };
  told.drain = [here](std::vector<std::uint32_t> shards) -> task<> {
    const state_ref self = here.lock();
    if (self == nullptr) co_return;
    auto drains = self->drain(std::move(shards));
    co_await std::move(drains);
  };
  told.members = [here](std::vector<member_row> now) {
    if (const state_ref self = here.lock()) self->changed(std::move(now));
  };
  told.changed = [here] {
    if (const state_ref self = here.lock()) self->tell_others();
  };
  return told;
}

void node_state::gained(std::uint32_t shard, std::uint64_t fence) {
  {
    std::lock_guard held(shards_[shard].mutex);
    shards_[shard].is_open = true;
    shards_[shard].fence = fence;
  }
  if (has_shared_store()) engine_->gained({{shard, fence}});
}

// What waits in the mailboxes of its actors is refused when its turn comes.
void node_state::lost(std::uint32_t shard) {
  decltype(shard_state::actors) gone;
  {
    std::lock_guard held(shards_[shard].mutex);
    shards_[shard].is_open = false;
    gone.swap(shards_[shard].actors);
  }
  counts_.actors.fetch_sub(gone.size(), relaxed);
  if (shard != own_shard && has_shared_store()) engine_->lost({shard});
}

task<> node_state::drain(std::vector<std::uint32_t> shards) {
  for (const std::uint32_t shard : shards) {
    std::lock_guard held(shards_[shard].mutex);
    shards_[shard].is_open = false;
  }
  for (const std::uint32_t shard : shards) {
    milliseconds pause{1};
    for (;;) {
      {
        std::lock_guard held(shards_[shard].mutex);
        // N2
        if (std::ranges::all_of(shards_[shard].actors,
                                [](const auto& one) { return one.second.use_count() == 1; }))
          break;
      }
      co_await sleep_for(pause);
      pause = std::min(2 * pause, milliseconds(50));
    }
  }
  if (has_shared_store()) {
    auto drains = engine_->drain(shards);
    co_await std::move(drains);
  }
  for (const std::uint32_t shard : shards) lost(shard);
}

void node_state::changed(std::vector<member_row> now) {
  std::vector<channel<member_event>> watchers;
  std::vector<std::stop_source> ended;
  std::vector<member_event> events;
  {
    std::lock_guard held(mutex_);
    const auto add = [&events](const std::vector<member_row>& these,
                               const std::vector<member_row>& others, bool joined) {
      for (const member_row& one : these) {
        if (!std::ranges::binary_search(others, one))
          events.push_back({joined, {one.id, one.name}});
      }
    };
    std::ranges::sort(now);
    add(members_, now, false);
    add(now, members_, true);
    members_ = std::move(now);
    watchers = watchers_;
    for (const member_event& one : events) {
      if (one.joined) continue;
      if (auto end = ends_.extract(one.who.id)) ended.push_back(std::move(end.mapped()));
    }
  }
  for (auto& one : ended) one.request_stop();
  for (const auto& to : watchers) {
    for (const member_event& one : events) static_cast<void>(to.try_send(one));
  }
}

channel<member_event> node_state::watch_members() {
  const auto made = channel<member_event>::bounded(events_kept);
  std::lock_guard held(mutex_);
  for (const member_row& one : members_)
    static_cast<void>(made.try_send(member_event{true, {one.id, one.name}}));
  watchers_.push_back(made);
  return made;
}

std::vector<cluster::member> node_state::members_now() const {
  std::lock_guard held(mutex_);
  std::vector<cluster::member> all;
  for (const member_row& one : members_) all.push_back({one.id, one.name});
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
      with_.exceptions, [&](const exception_entry& one) { return *one.type == type; });
  return found == with_.exceptions.end() ? nullptr : &*found;
}
const exception_entry* node_state::find_exception(std::string_view name) const noexcept {
  const auto found = std::ranges::find(with_.exceptions, name, &exception_entry::name);
  return found == with_.exceptions.end() ? nullptr : &*found;
}

cluster::counts node_state::counts() const {
  cluster::counts now;
  now.actors = counts_.actors.load(relaxed);
  now.made = counts_.made.load(relaxed);
  now.put_away = counts_.put_away.load(relaxed);
  now.local = counts_.local.load(relaxed);
  now.sent = counts_.sent.load(relaxed);
  now.served = counts_.served.load(relaxed);
  now.sent_again = counts_.sent_again.load(relaxed);
  now.failed = counts_.failed.load(relaxed);
  now.waiting = counts_.waiting.load(relaxed);
  if (has_joined_) {
    for (std::uint32_t shard = 0; shard < shard_count; ++shard)
      now.shards += placement_->is_mine(shard);
  }
  std::lock_guard held(mutex_);
  now.members = members_.size();
  return now;
}

}  // namespace troupe::cluster::parts
