#include "durable/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "durable/memory/outside_calls.hpp"

namespace troupe::durable::parts {

engine::engine(runtime& on, std::unique_ptr<storage> storage, durable::options chosen,
               std::vector<kind_table> kinds, std::shared_ptr<shard_scope> scope)
    : core_(*this, on, std::move(storage), chosen, std::move(kinds), std::move(scope)) {}

engine::~engine() { idle_timer_.cancel(); }

task<> engine::open() {
  core_.clock.open();
  reminder_sender_.open();
  auto opens = core_.storage->open();
  opened_storage found = co_await std::move(opens);
  std::vector<class_shape> added = core_.classes.compare(found.classes, core_.storage->name());
  if (!added.empty()) {
    auto keeps = core_.storage->keep_classes(std::move(added));
    co_await std::move(keeps);
  }
  auto looks = core_.storage->reminders(1);
  std::vector<stored_reminder> first = co_await std::move(looks);
  show();
  guard held(core_);
  core_.batches.go_on_after(std::max<std::uint64_t>(found.last_batch, 1));
  core_.inbox.go_on_after(found.last_order);
  if (!core_.shards.is_divided() && found.last_order > 0) core_.inbox.begin_backlog();
  if (!first.empty()) core_.reminders.plan(first.front().due);
  core_.need_inbox();
  const std::weak_ptr<engine> self = weak_from_this();
  const auto look = [self] {
    const std::shared_ptr<engine> alive = self.lock();
    if (alive == nullptr) return;
    engine_core& core = alive->core_;
    guard at_work(core);
    core.actors.unload(core.actors.size(), core.now_ns() - core.chosen.idle_max.count(),
                       core.batches.stored());
  };
  const outside_calls none;
  idle_timer_ = core_.on.every(
      std::max<std::chrono::nanoseconds>(core_.chosen.idle_max / 2, std::chrono::milliseconds(1)),
      look, {.weak = true});
}

void engine::check_key(const void* tag, std::string_view key) const {
  const kind_table* const kind = core_.classes.find(tag);
  if (kind == nullptr) return;
  if (core_.shards.is_divided()) core_.shards.scope().check_key(key);
  core_.storage->check_name(kind->name, key);
}

task<std::vector<std::string>> engine::keys(const void* tag, key_range range) const {
  storage& database = *core_.storage;
  return database.keys(core_.classes.find(tag)->name, std::move(range));
}

durable::counts engine::counts_now() const {
  durable::counts now = core_.numbers.counts;
  now.actors = core_.actors.size();
  now.unloaded = core_.actors.unloaded();
  now.waiting = core_.inbox.waiting();
  now.is_away = !core_.health.works();
  return now;
}

durable::counts engine::counts() const {
  std::lock_guard held(core_.mutex);
  return counts_now();
}

void engine::show() {
  const std::weak_ptr<const engine> self = weak_from_this();
  const auto collect = [self](observe::row_sink& to, const std::vector<std::string>& labels) {
    const std::shared_ptr<const engine> alive = self.lock();
    if (alive == nullptr) return;
    store_numbers now;
    {
      std::lock_guard held(alive->core_.mutex);
      now = alive->core_.numbers.with_commits(alive->counts_now());
    }
    now.add_to(to, labels);
  };
  shown_ =
      observing::components_of(core_.on)->add({"durable", "store", core_.storage->name(), collect});
}

void send(const std::shared_ptr<engine>& engine, request request) noexcept {
  engine->send(std::move(request));
}

}  // namespace troupe::durable::parts
