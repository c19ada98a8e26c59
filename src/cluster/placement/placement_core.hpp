// placement_core: the object behind `placement`; its loop, and the loop's data.
//
// The loop makes one step each time it is woken: by the end of a renewal or of a drain, which run
// beside it, by a call from outside, or by the time at which the next thing is due.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/placement/lease_words.hpp"
#include "cluster/placement/placement.hpp"
#include "cluster/placement/placement_stages.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/task/event.hpp"

namespace troupe::cluster {

class placement::core final : public std::enable_shared_from_this<placement::core> {
 public:
  using time = std::chrono::nanoseconds;  // of the node's clock, or a span
  using member_ptr = std::shared_ptr<const member_row>;

  core(runtime& on, std::unique_ptr<lease_store> store, std::string cluster, member_row self,
       placement_options chosen, hooks told);

  static task<> start(std::shared_ptr<core> self);
  static task<> stop(std::shared_ptr<core> self, time at_most);
  void kill() noexcept;
  void hurry();

  bool is_mine(std::uint32_t shard) const noexcept { return words_.is_mine(shard, clock_); }
  bool is_mine(std::uint32_t shard, std::uint64_t fence) const noexcept {
    return words_.is_mine(shard, fence, clock_);
  }
  std::uint64_t fence(std::uint32_t shard) const noexcept { return words_.fence(shard); }
  member_ptr owner(std::uint32_t shard) const;
  std::vector<member_row> members() const;
  placement_counts counts() const;

 private:
  static constexpr time never = time::max();

  // A renewal that was sent, and its outcome.
  struct attempt {
    cluster::renewal renewal;
    time begun{0};
    std::optional<lease_view> view;
    std::exception_ptr failed;
  };
  struct drained {
    std::vector<held_shard> shards;
    bool well = false;
    bool is_last = true;  // the drain has ended
  };
  // A row of the store, as the node last read it.
  struct known_shard {
    member_ptr owner;
    std::uint64_t fence = 0;
    bool is_own = false;  // this node's
  };
  // The actions that follow from the rows and the members.
  struct plan {
    std::uint32_t want = 0;
    std::uint32_t excess = 0;
    bool releases = false;  // the store has shards as this node's that it does not have any more
  };

  void wake();
  static task<> run(std::shared_ptr<core> self);
  static task<> renew(std::shared_ptr<core> self, attempt renewing);
  static task<> drain(std::shared_ptr<core> self, drained handed, time at_most);

  // The loop's steps.
  bool go_on();
  bool ends_for_now();
  void note(drained ended);
  void lose(const std::vector<std::uint32_t>& shards);
  void take(const drained& ended);
  void take(const attempt& ended);
  void take_failure(const attempt& ended);
  void apply(const attempt& ended);
  void note_members(const std::vector<member_row>& rows);
  void note_owners(const std::vector<shard_row>& rows);
  std::vector<std::uint32_t> take_away_unless_held(const lease_view& view);
  bool has_only(const std::vector<held_shard>& held) const;
  std::vector<held_shard> give_new(const attempt& ended);
  void expire();
  void begin_drains();
  void begin_renewal();
  void finish() noexcept;

  const plan& planned();
  plan make_plan() const;
  bool has(const known_shard& row, std::uint32_t shard) const {
    return words_.fence(shard) == row.fence;
  }
  time due() const;
  time next_step() const;
  time hurry_pause() const;
  time random_part_of(time whole) const;
  bool lasts_forever() const noexcept { return chosen_.lease == forever; }

  runtime& on_;
  const std::unique_ptr<lease_store> store_;
  const std::string cluster_;
  const member_row self_;
  const placement_options chosen_;
  const hooks told_;
  const time period_;
  std::function<time()> clock_;

  lease_words words_;
  const event woken_, started_, ended_;

  mutable base::small_mutex mutex_;
  // Written by the loop, read by all.
  std::array<known_shard, shard_count> rows_;
  std::vector<member_ptr> members_;
  placement_counts counts_;
  // Events outside the loop.
  std::optional<attempt> attempt_;
  std::vector<drained> drained_;
  std::exception_ptr start_failed_;
  loop_stage loop_;
  bool hurried_ = false;
  std::optional<time> stop_asked_;  // when the departure must have ended

  // The loop's own.
  member_stage stage_;
  departure departure_;
  time leave_by_{0};  // once the departure has begun
  std::optional<plan> plan_;
  std::bitset<shard_count> draining_;
  std::uint32_t mine_ = 0;
  unsigned drains_ = 0;
  bool renewing_ = false, hurries_ = false;
  std::uint64_t round_ = 0, seen_ = 0;
  time last_renewal_{0}, next_renewal_{0}, next_check_{never}, not_before_{0}, backoff_{0};
};

}  // namespace troupe::cluster
