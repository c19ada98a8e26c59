#include "durable/core/faulty_storage.hpp"

#include <chrono>
#include <type_traits>
#include <utility>

#include "kit/clock_and_random.hpp"
#include "sched/policies/choices.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/database/error.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

using sched::fault;
using sched::fault_point;

class faulty_storage final : public storage {
 public:
  explicit faulty_storage(std::unique_ptr<storage> whole) : whole_(std::move(whole)) {}

  std::string name() const override { return whole_->name(); }
  void check_name(std::string_view kind, std::string_view key) const override {
    whole_->check_name(kind, key);
  }
  task<opened_storage> open() override {
    return call([this] { return whole_->open(); });
  }
  task<> keep_classes(std::vector<class_shape> added) override {
    return call([this, added = std::move(added)] { return whole_->keep_classes(added); }, true);
  }
  task<std::optional<stored_state>> load(actor_name actor) override {
    return call([this, actor = std::move(actor)] { return whole_->load(actor); });
  }
  task<std::vector<std::string>> keys(std::string kind, key_range range) override {
    return call([this, kind = std::move(kind), range = std::move(range)] {
      return whole_->keys(kind, range);
    });
  }
  task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) override {
    return call([this, after, most] { return whole_->inbox(after, most); });
  }
  task<found_message> find(message_id id) override {
    return call([this, id] { return whole_->find(id); });
  }
  task<std::vector<stored_reminder>> reminders(std::size_t most) override {
    return call([this, most] { return whole_->reminders(most); });
  }
  task<> commit(std::shared_ptr<const batch> all) override {
    return call([this, all = std::move(all)] { return whole_->commit(all); }, true);
  }
  task<std::uint64_t> last_batch() override {
    return call([this] { return whole_->last_batch(); });
  }
  task<std::uint64_t> reserve_orders() override {
    return call([this] { return whole_->reserve_orders(); });
  }
  void act_for(std::vector<std::uint32_t> shards) override { whole_->act_for(std::move(shards)); }

 private:
  // A call without a fault is the call of the whole storage: it takes no further turn.
  template <class Begin>
  std::invoke_result_t<Begin> call(Begin begin, bool commits = false) {
    const tasks::runtime_state* const simulated = tasks::simulation_here();
    if (simulated == nullptr) return begin();
    sched::runtime_host& runtime = simulated->runtime;
    fault wrong = runtime.storage_fault(fault_point::storage, &lineage_);
    if (commits && wrong == fault::none)
      wrong = runtime.storage_fault(fault_point::commit, &lineage_);
    if (wrong == fault::none) return begin();
    return call_wrongly(std::move(begin), wrong, commits);
  }

  template <class Begin>
  static std::invoke_result_t<Begin> call_wrongly(Begin begin, fault wrong, bool commits) {
    const bool stalls = wrong == fault::storage_stalls;
    if (stalls) co_await sleep_for(std::chrono::nanoseconds(sched::stall_ns));
    if (wrong == fault::storage_slow)
      co_await sleep_for(std::chrono::nanoseconds(sched::fault_delay_ns));
    if (wrong == fault::storage_fails) fail(database::failure::busy, database::effect::none);
    if (stalls || wrong == fault::storage_cut) {
      fail(database::failure::lost, commits ? database::effect::unknown : database::effect::none);
    }
    auto begun = begin();
    if (wrong != fault::commit_lost) co_return co_await std::move(begun);
    if constexpr (std::is_same_v<std::invoke_result_t<Begin>, task<>>) {
      co_await std::move(begun);
    } else {
      static_cast<void>(co_await std::move(begun));
    }
    fail(database::failure::lost, database::effect::unknown);
  }

  [[noreturn]] static void fail(database::failure kind, database::effect done) {
    throw database::error(kind, 0, "troupe: durable: the storage failed, as the search says",
                          database::rule::other, done);
  }

  const std::unique_ptr<storage> whole_;
  sched::lineage lineage_;
};

}  // namespace

std::unique_ptr<storage> with_faults(std::unique_ptr<storage> whole) {
  if (!kit::is_simulated()) return whole;
  return std::make_unique<faulty_storage>(std::move(whole));
}

}  // namespace troupe::durable::parts
