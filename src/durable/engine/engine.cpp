#include "durable/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "troupe/base/error.hpp"

namespace troupe::durable::parts {
engine::engine(runtime& on, std::unique_ptr<storage> storage, durable::options chosen,
               std::vector<kind_table> kinds, std::shared_ptr<shard_scope> scope)
    : core_(*this, on, std::move(storage), chosen, std::move(kinds), std::move(scope)) {}

engine::~engine() { idle_timer_.cancel(); }

task<> engine::open() {
  clock_.open();
  reminder_sender_.open();
  auto opens = storage_->open();
  opened_storage found = co_await std::move(opens);
  std::vector<class_shape> added = classes_.compare(found.classes, storage_->name());
  if (!added.empty()) {
    auto keeps = storage_->keep_classes(std::move(added));
    co_await std::move(keeps);
  }
  auto looks = storage_->reminders(1);
  std::vector<stored_reminder> first = co_await std::move(looks);
  show();
  guard held(core_);
  batches_.go_on_after(std::max<std::uint64_t>(found.last_batch, 1));
  inbox_.go_on_after(found.last_order);
  if (!shards_.is_divided() && found.last_order > 0) inbox_.begin_backlog();
  if (!first.empty()) reminders_.plan(first.front().due);
  core_.need_inbox();
  const std::weak_ptr<engine> self = weak_from_this();
  const auto look = [self] {
    const std::shared_ptr<engine> alive = self.lock();
    if (alive == nullptr) return;
    guard at_work(alive->core_);
    alive->actors_.put_away(alive->actors_.size(),
                            alive->core_.now_ns() - alive->chosen_.idle_max.count(),
                            alive->batches_.stored());
  };
  const outside_calls none;
  idle_timer_ = on_.every(
      std::max<std::chrono::nanoseconds>(chosen_.idle_max / 2, std::chrono::milliseconds(1)), look,
      {.weak = true});
}

void engine::check_key(const void* tag, std::string_view key) const {
  const kind_table* const kind = classes_.find(tag);
  if (kind == nullptr) return;
  if (shards_.is_divided()) shards_.scope().check_key(key);
  storage_->check_name(kind->name, key);
}

task<std::vector<std::string>> engine::keys(const void* tag, key_range range) const {
  storage& database = *storage_;
  return database.keys(classes_.find(tag)->name, std::move(range));
}

// The functions below are called with the mutex held.

// With the mutex held.
durable::counts engine::counts_now() const {
  durable::counts now = numbers_.counts;
  now.actors = actors_.size();
  now.put_away = actors_.put_away_so_far();
  now.waiting = inbox_.waiting();
  now.is_away = !health_.works();
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
      now = alive->numbers_.with_commits(alive->counts_now());
    }
    now.add_to(to, labels);
  };
  shown_ = observing::components_of(on_)->add({"durable", "store", storage_->name(), collect});
}

void send(const std::shared_ptr<engine>& engine, request what) noexcept {
  engine->send(std::move(what));
}

}  // namespace troupe::durable::parts
