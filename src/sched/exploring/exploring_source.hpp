// exploring_source: answers a simulation's questions by a schedule instead of a seed.
//
// All that a schedule does not decide (random numbers of the program, files, the pieces that a
// connection transfers) follows from the schedule's seed, as without a search.
// Thread: the simulation's own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sched/exploring/livelock.hpp"
#include "sched/exploring/schedule.hpp"
#include "sched/policies/choices.hpp"

namespace troupe::sched::exploring {

class exploring_source final : public choice_source {
 public:
  explicit exploring_source(std::shared_ptr<execution> owner);

  std::uint64_t decide(const choice_point& at) override;
  void begin(connection_choices& choices) override;
  fault fault_at(fault_point where, const lineage* named) override;
  bool asks_always() const noexcept override { return true; }
  choice_name root() const noexcept override { return root_; }
  void after_turn(std::int64_t now_ns) override;
  void out_of_work(std::uint64_t dead_letters) override;

 private:
  static constexpr std::size_t none = SIZE_MAX;
  // The known facts of a runnable.
  struct known {
    lineage origin;
    std::uint32_t runs = 0;     // turns that have begun
    bool waits = false;         // it is ready
    std::uint64_t arrived = 0;  // the last time that it became ready
    std::uint64_t begun = 0;    // how many turns had begun then
    std::uint64_t number = 0;   // of its arrival, or of its last return
    std::uint64_t priority = 0;
    std::size_t hold = none;  // in holds_, of the turn that comes next
  };
  bool is_free() const noexcept { return execution_->plan.by == strategy::random; }
  std::uint64_t next(const choice_point& at);
  known& meet(const lineage& ready);
  void arrive(known& item);
  void make_hold(const hold& held);
  void meet_hold(std::size_t nth);
  bool is_held(const connection_choices& connection) const noexcept;
  void tell(const char* line) const;
  std::size_t hold_of(const known& item) const noexcept;
  bool holds_back(const known& item) const noexcept;
  std::size_t choose();
  std::size_t oldest(bool free_only) const noexcept;
  std::size_t by_priority();
  void begin_turn(known& item, bool contested);

  const std::shared_ptr<execution> execution_;
  const unsigned runtime_;
  const choice_name root_;
  seeded_source seeded_;
  std::mt19937_64 random_;
  std::vector<hold> holds_;
  std::unordered_map<choice_name, std::vector<std::size_t>> holds_of_;  // by the held name
  std::unordered_map<choice_name, std::uint32_t> ended_;  // turns that ended, of those waited for
  std::unordered_map<choice_name, known> known_;
  // sends of each connection, and calls and commits of each storage
  std::map<std::pair<fault_point, choice_name>, std::uint32_t> calls_;
  std::vector<std::uint64_t> change_points_;  // from the last one down
  std::vector<lineage> listed_;
  std::vector<known*> ready_;
  livelock livelock_;
  std::uint64_t arrivals_ = 0;
  turn_id running_;
  choice_name running_name_ = program_name;
  unsigned passes_left_;
  bool passed_ = false;  // the last answer let time pass
};

}  // namespace troupe::sched::exploring
