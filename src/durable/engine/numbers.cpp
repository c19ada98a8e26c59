// What a store has done, in numbers: in the summary of its runtime, from which /metrics is made
// (src/observe_page/metrics.cpp).
#include <mutex>

#include "durable/engine/engine.hpp"

namespace troupe::durable::parts {

durable::counts engine::counts() const {
  std::lock_guard held(mutex_);
  durable::counts now = counts_;
  now.actors = actors_.size();
  now.waiting = waiting_;
  now.is_away = away_ != nullptr;
  return now;
}

// With the mutex held.
void engine::count_commit(const filling& stored) {
  const std::int64_t took_ns = now_ns() - stored.began_ns;
  ++counts_.commits;
  counts_.commit_time += std::chrono::nanoseconds(took_ns);
  commit_ns_.add(observe::value_counts::bucket_of(static_cast<std::uint64_t>(took_ns)), 1);
  commit_turns_.add(observe::value_counts::bucket_of(stored.turns), 1);
}

void engine::show() {
  const std::weak_ptr<const engine> self = weak_from_this();
  shown_ = observing::components_of(on_)->add(
      {"durable", "store", in_->name(), [self](observing::json_text& to) {
         if (const std::shared_ptr<const engine> here = self.lock()) here->write_numbers(to);
       }});
}

void engine::write_numbers(observing::json_text& to) const {
  const durable::counts now = counts();
  observe::value_counts took, turns;
  {
    std::lock_guard held(mutex_);
    took = commit_ns_;
    turns = commit_turns_;
  }
  to.member("turns", now.turns).member("messages", now.messages);
  to.member("failed_turns", now.failed_turns).member("retries", now.retries);
  to.member("dead_letters", now.dead_letters).member("reminders", now.reminders);
  to.member("commits", now.commits).member("failed_commits", now.failed_commits);
  to.member("loads", now.loads).member("put_away", now.put_away);
  to.member("actors", now.actors).member("waiting", now.waiting);
  to.member("away", now.is_away ? 1 : 0);
  to.member("commit_ns", now.commit_time.count());
  to.member("commit_p50_ns", took.quantile(0.5)).member("commit_p99_ns", took.quantile(0.99));
  to.member("commit_p50_turns", turns.quantile(0.5));
  to.member("commit_p99_turns", turns.quantile(0.99));
}

}  // namespace troupe::durable::parts
