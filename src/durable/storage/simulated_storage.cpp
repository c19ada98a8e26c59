#include "troupe/durable/simulated_storage.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "kit/clock_and_random.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable {

// Everything under one mutex; a commit is done as a whole.
struct simulated_database::tables {
  mutable std::mutex mutex;
  simulated_faults faults;
  bool away = false;
  std::set<std::string> cut_off;  // nodes
  std::uint64_t owner = 0;

  std::uint64_t last_batch = 0;
  std::uint64_t last_order = 0;
  std::map<std::uint64_t, std::uint64_t> last_batches;  // of the nodes of a cluster
  std::vector<class_shape> classes;
  std::map<actor_name, stored_state> states;
  std::map<actor_name, std::map<std::uint64_t, bytes>> events;
  std::map<std::uint64_t, stored_message> inbox;
  std::map<message_id, stored_answer> answers;
  std::vector<dead_letter> dead;
  std::map<std::pair<actor_name, std::string>, stored_reminder> reminders;

  void apply(const batch& all);
  bool may_be_forgotten(const stored_answer& answer, bool in_cluster) const;
};

// In a cluster a message that is still in the inbox may be sent to another node once more, or ask
// once more.
bool simulated_database::tables::may_be_forgotten(const stored_answer& answer,
                                                  bool in_cluster) const {
  if (!in_cluster) return answer.asker.is_none();
  return std::ranges::none_of(inbox, [&answer](const auto& row) {
    return row.second.id == answer.id || row.second.id == answer.asker;
  });
}

void simulated_database::tables::apply(const batch& all) {
  for (const auto& message : all.arrived) {
    inbox.emplace(message->order, *message);
    last_order = std::max(last_order, message->order);
  }
  for (const batch::failed_message& failed : all.failed) {
    const auto at = inbox.find(failed.order);
    if (at != inbox.end()) at->second.failures = failed.failures;
  }
  for (const std::uint64_t order : all.handled) inbox.erase(order);
  for (const batch::changed_state& changed : all.states) states[changed.actor] = changed.state;
  for (const batch::appended_event& event : all.events)
    events[event.actor][event.number] = event.value;
  for (const stored_answer& answer : all.answers) answers[answer.id] = answer;
  for (const message_id& ended : all.ended)
    std::erase_if(answers, [&](const auto& entry) { return entry.second.asker == ended; });
  std::erase_if(answers, [&](const auto& entry) {
    return entry.second.at < all.forget_before &&
           may_be_forgotten(entry.second, !all.shards.empty());
  });
  dead.insert(dead.end(), all.dead.begin(), all.dead.end());
  for (const stored_reminder& reminder : all.reminders)
    reminders[{reminder.to, reminder.name}] = reminder;
  for (const batch::reminder_name& removed : all.removed_reminders)
    reminders.erase({removed.actor, removed.name});
  for (const batch::fired_reminder& fired : all.fired_reminders) {
    const auto at = reminders.find({fired.actor, fired.name});
    if (at == reminders.end() || at->second.due != fired.due) continue;
    if (fired.next) {
      at->second.due = *fired.next;
    } else {
      reminders.erase(at);
    }
  }
}

namespace {

using tables = simulated_database::tables;

bool happens(std::uint64_t one_in) { return one_in != 0 && kit::random_number() % one_in == 0; }

[[noreturn]] void fail(database::failure kind, database::effect done) {
  throw database::error(kind, 0, "troupe: durable: the simulated database failed",
                        database::rule::other, done);
}

class in_memory : public storage {
 public:
  explicit in_memory(std::shared_ptr<tables> tables, std::string node = {})
      : tables_(std::move(tables)), node_(std::move(node)) {}

  std::string name() const override { return "a simulated database"; }
  task<opened_storage> open() override {
    co_await delay();
    std::lock_guard held(tables_->mutex);
    check_faults();
    owner_ = ++tables_->owner;
    co_return opened_storage{tables_->last_batch, tables_->last_order, tables_->classes};
  }
  task<> keep_classes(std::vector<class_shape> added) override {
    co_await delay();
    std::lock_guard held(tables_->mutex);
    check();
    for (class_shape& shape : added) {
      std::erase_if(tables_->classes, [&shape](const class_shape& other) {
        return other.kind == shape.kind && other.schema == shape.schema;
      });
      tables_->classes.push_back(std::move(shape));
    }
  }
  task<std::optional<stored_state>> load(actor_name actor) override {
    co_await delay();
    std::optional<stored_state> found = look(actor);
    co_await delay();
    co_return found;
  }
  task<std::vector<std::string>> keys(std::string kind, key_range range) override {
    co_await delay();
    std::vector<std::string> found = look_at_keys(kind, range);
    co_await delay();
    co_return found;
  }
  task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) override {
    co_await delay();
    std::vector<stored_message> found = look(after, most);
    co_await delay();
    co_return found;
  }
  task<found_message> find(message_id id) override {
    co_await delay();
    found_message found = look(id);
    co_await delay();
    co_return found;
  }
  task<std::vector<stored_reminder>> reminders(std::size_t most) override {
    co_await delay();
    std::vector<stored_reminder> found = look_at_reminders(most);
    co_await delay();
    co_return found;
  }
  task<> commit(std::shared_ptr<const batch> all) override {
    co_await delay();
    const bool loses = store(*all);
    co_await delay();
    if (loses) fail(database::failure::lost, database::effect::unknown);
  }
  task<std::uint64_t> last_batch() override {
    co_await delay();
    std::lock_guard held(tables_->mutex);
    check();
    co_return number_of_last_batch();
  }

 protected:
  std::vector<std::string> look_at_keys(const std::string& kind, const key_range& range) const {
    std::lock_guard held(tables_->mutex);
    check();
    const bool is_behind = range.after && *range.after >= range.prefix;
    const actor_name from{kind, is_behind ? *range.after : range.prefix};
    std::set<std::string> found;
    const auto add = [&](const auto& rows) {
      auto row = is_behind ? rows.upper_bound(from) : rows.lower_bound(from);
      for (std::size_t i = 0; i < range.most && row != rows.end(); ++i, ++row) {
        if (row->first.kind != kind || !row->first.key.starts_with(range.prefix)) break;
        found.insert(row->first.key);
      }
    };
    add(tables_->states);
    add(tables_->events);
    std::vector<std::string> keys(found.begin(), found.end());
    keys.resize(std::min(keys.size(), range.most));
    return keys;
  }
  std::optional<stored_state> look(const actor_name& actor) const {
    std::lock_guard held(tables_->mutex);
    check();
    std::optional<stored_state> found;
    const auto state = tables_->states.find(actor);
    if (state != tables_->states.end()) found = state->second;
    const auto events = tables_->events.find(actor);
    if (events == tables_->events.end()) return found;
    if (!found) found.emplace();
    for (const auto& [number, event] : events->second) {
      if (number > found->number) found->events.push_back(event);
    }
    return found;
  }
  std::vector<stored_message> look(std::uint64_t after, std::size_t most) const {
    std::lock_guard held(tables_->mutex);
    check();
    std::vector<stored_message> found;
    for (auto at = tables_->inbox.upper_bound(after);
         at != tables_->inbox.end() && found.size() < most; ++at) {
      if (acts_for(at->second.shard)) found.push_back(at->second);
    }
    return found;
  }
  found_message look(message_id id) const {
    std::lock_guard held(tables_->mutex);
    check();
    found_message found;
    const auto answer = tables_->answers.find(id);
    if (answer != tables_->answers.end()) {
      found.answer = answer->second;
      found.call = answer->second.call;
    }
    const auto waits = std::ranges::find_if(tables_->inbox, [&](const auto& entry) {
      return entry.second.named && entry.second.id == id;
    });
    found.in_inbox = waits != tables_->inbox.end();
    if (found.in_inbox && !found.answer) found.call = call_identity::of(waits->second);
    return found;
  }
  std::vector<stored_reminder> look_at_reminders(std::size_t most) const {
    std::lock_guard held(tables_->mutex);
    check();
    std::vector<stored_reminder> found;
    for (const auto& [name, row] : tables_->reminders) {
      if (acts_for(row.shard)) found.push_back(row);
    }
    std::ranges::sort(found, {}, &stored_reminder::due);
    if (found.size() > most) found.resize(most);
    return found;
  }
  // Returns whether the answer is lost; then it has been stored or not.
  bool store(const batch& all) {
    std::lock_guard held(tables_->mutex);
    check();
    check_shards(all);
    const bool loses = happens(tables_->faults.loses);
    if (!loses || happens(2)) {
      tables_->apply(all);
      number_of_last_batch() = all.number;
    }
    return loses;
  }
  // The way there, or back.
  task<> delay() {
    std::chrono::nanoseconds most{0};
    {
      std::lock_guard held(tables_->mutex);
      most = tables_->faults.delay_max;
    }
    if (most.count() == 0) co_return;
    co_await sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(
        kit::random_number() % static_cast<std::uint64_t>(most.count()))));
  }
  void check_faults() const {
    if (tables_->away || tables_->cut_off.contains(node_) || happens(tables_->faults.refuses))
      fail(database::failure::busy, database::effect::none);
  }
  virtual void check() const {
    if (owner_ != tables_->owner)
      throw store_taken("troupe: durable: another store has opened the simulated database since");
    check_faults();
  }
  virtual void check_shards(const batch&) const {}
  virtual bool acts_for(std::uint32_t) const { return true; }
  virtual std::uint64_t& number_of_last_batch() { return tables_->last_batch; }

  const std::shared_ptr<tables> tables_;
  const std::string node_;  // "": of no cluster, or without a name
  std::uint64_t owner_ = 0;
};

// The part of one node of a cluster.
class node_in_memory final : public in_memory {
 public:
  node_in_memory(std::shared_ptr<tables> shared, std::function<bool(const held_shard&)> is_mine,
                 std::string node)
      : in_memory(std::move(shared), std::move(node)), is_mine_(std::move(is_mine)) {}

  task<opened_storage> open() override {
    co_await delay();
    std::lock_guard held(tables_->mutex);
    check_faults();
    owner_ = ++tables_->owner;
    co_return opened_storage{0, reserve(), tables_->classes};
  }
  task<std::uint64_t> reserve_orders() override {
    co_await delay();
    std::lock_guard held(tables_->mutex);
    check_faults();
    co_return reserve();
  }
  void act_for(std::vector<std::uint32_t> shards) override {
    std::lock_guard held(tables_->mutex);
    shards_ = std::set<std::uint32_t>(shards.begin(), shards.end());
  }

 private:
  std::uint64_t reserve() {
    const std::uint64_t before = tables_->last_order;
    tables_->last_order += orders_at_once;
    return before;
  }
  void check() const override { check_faults(); }
  void check_shards(const batch& all) const override {
    std::vector<std::uint32_t> moved;
    for (const held_shard& held : all.shards) {
      if (!is_mine_(held)) moved.push_back(held.shard);
    }
    if (!moved.empty())
      throw shard_moved(std::move(moved), "troupe: durable: another node owns these actors now");
  }
  bool acts_for(std::uint32_t shard) const override { return shards_.contains(shard); }
  std::uint64_t& number_of_last_batch() override { return tables_->last_batches[owner_]; }

  const std::function<bool(const held_shard&)> is_mine_;
  std::set<std::uint32_t> shards_;
};

}  // namespace

simulated_database::simulated_database() : tables_(std::make_shared<tables>()) {}

std::unique_ptr<storage> simulated_database::storage() const {
  return std::make_unique<in_memory>(tables_);
}
std::unique_ptr<storage> simulated_database::storage_of_node(
    std::function<bool(const held_shard&)> is_mine, std::string node) const {
  return std::make_unique<node_in_memory>(tables_, std::move(is_mine), std::move(node));
}

void simulated_database::set_faults(const simulated_faults& now) {
  std::lock_guard held(tables_->mutex);
  tables_->faults = now;
}
void simulated_database::set_away(bool away) {
  std::lock_guard held(tables_->mutex);
  tables_->away = away;
}

void simulated_database::set_cut_off(const std::string& node, bool cut_off) {
  std::lock_guard held(tables_->mutex);
  if (cut_off) {
    tables_->cut_off.insert(node);
  } else {
    tables_->cut_off.erase(node);
  }
}

std::string simulated_database::dump() const {
  std::lock_guard held(tables_->mutex);
  std::string text = "batch " + std::to_string(tables_->last_batch) + "\n";
  for (const auto& [order, message] : tables_->inbox)
    text += "inbox " + std::to_string(order) + " " + message.to.kind + " " + message.to.key + " " +
            message.method + " " + message.id.to_string() + "\n";
  for (const auto& [name, reminder] : tables_->reminders)
    text += "reminder " + reminder.to.kind + " " + reminder.to.key + " " + reminder.name + "\n";
  for (const auto& [id, answer] : tables_->answers)
    text += "answer " + id.to_string() + " to " + answer.asker.to_string() + "\n";
  for (const auto& [name, state] : tables_->states)
    text += "state " + name.kind + " " + name.key + " of " + std::to_string(state.value.size()) +
            " bytes\n";
  for (const dead_letter& letter : tables_->dead)
    text += "dead " + letter.message.to.kind + " " + letter.message.to.key + " " +
            letter.message.method + ": " + letter.error + "\n";
  return text;
}

}  // namespace troupe::durable
