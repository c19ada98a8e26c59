// How actors move between workers, in counts and not in times: what lies behind a stuck turn is taken in one piece.
#include <atomic>
#include <utility>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

// Each tells itself again and again.
struct spinner {
  std::atomic<std::uint64_t>* begun;
  const std::atomic<bool>* end;
  bool ran = false;
  void turn() {
    if (!std::exchange(ran, true) && begun->fetch_add(1) + 1 == 60) begun->notify_all();
    if (!end->load()) self(this).tell<&spinner::turn>();
  }
};
struct blocker {
  std::vector<ref<spinner>> behind;
  std::atomic<std::uint64_t>* begun;
  void block() {
    for (auto& one : behind) one.tell<&spinner::turn>();
    for (std::uint64_t seen = begun->load(); seen != 60; seen = begun->load()) begun->wait(seen);
  }
};

TEST(moves, what_waits_behind_a_stuck_turn_is_taken_in_one_piece_by_one_that_is_busy) {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<bool> end{false};
  runtime_options options;
  options.workers = 2;
  options.policy = policy::work_stealing;
  runtime rt(options);
  std::vector<ref<spinner>> all;
  for (int i = 0; i < 60; ++i) all.push_back(rt.spawn<spinner>(&begun, &end));
  rt.run();
  const std::uint64_t before = rt.metrics().total.steals;
  rt.spawn<blocker>(std::move(all), &begun).tell<&blocker::block>();
  for (std::uint64_t seen = begun.load(); seen != 60; seen = begun.load()) begun.wait(seen);
  // Half by a thief, which is busy from then on, then the rest. By halves it would be six.
  EXPECT_LE(rt.metrics().total.steals - before, 4u);
  end = true;
  rt.run();
}

}  // namespace
}  // namespace troupe::test
