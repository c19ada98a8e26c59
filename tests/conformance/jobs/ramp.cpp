// As many long parts as workers. A worker that takes one part and leaves others calls further
// workers at once, so that all parts begin before one ends. The parts wait for each other. So if a
// part is left behind a long one, the test hangs until its limit. Two processors suffice.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// Parts meet here: each waits until all have begun.
class meeting {
 public:
  explicit meeting(unsigned wanted) : number(next_number()), wanted_(wanted) {}
  const unsigned number;  // no two meetings have the same one
  // Waits for the others, and gives up after a minute.
  void attend() {
    std::unique_lock lock(mutex_);
    ++begun_;
    if (begun_ >= wanted_ || given_up_) return all_here_.notify_all();
    given_up_ = !all_here_.wait_for(lock, 60s, [this] { return begun_ >= wanted_ || given_up_; }) ||
                given_up_;
    if (!given_up_) return;
    if (missed_at_ == 0) missed_at_ = begun_;
    all_here_.notify_all();
  }
  std::string verdict() const {
    if (missed_at_ == 0 && begun_ >= wanted_) return "all began before one ended";
    return "only " + std::to_string(missed_at_ == 0 ? begun_ : missed_at_) + " of " +
           std::to_string(wanted_) + " parts had begun after a minute";
  }

 private:
  static unsigned next_number() {
    static std::atomic<unsigned> numbers{0};
    return ++numbers;
  }
  const unsigned wanted_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  unsigned begun_ = 0, missed_at_ = 0;
  bool given_up_ = false;
};

work<int> part(meeting& all) {
  all.attend();
  co_return 1;
}
work<int> fork_span(meeting& all, unsigned count) {
  std::vector<work<int>> parts;
  for (unsigned i = 0; i < count; ++i) parts.push_back(part(all));
  co_await fork(std::span(parts));
  int sum = 0;
  for (auto& one : parts) sum += one.take();
  co_return sum;
}
work<int> halves(meeting& all, unsigned count) {
  if (count == 1) co_return co_await part(all);
  auto [one, two] = co_await fork(halves(all, count / 2), halves(all, count - count / 2));
  co_return one + two;
}
work<int> loop(meeting& all, unsigned count) {
  std::vector<int> numbers(count);
  co_await parallel_for(numbers, [&all](int& one) {
    all.attend();
    one = 1;
  });
  co_return std::accumulate(numbers.begin(), numbers.end(), 0);
}
work<int> reduce(meeting& all, unsigned count) {
  const std::vector<int> numbers(count, 1);
  const auto waits = [&all](int one) {
    all.attend();
    return one;
  };
  co_return co_await parallel_reduce(numbers, 0, std::plus(), waits);
}

// Each thread waits the first time that it compares two neighbours in their final places: it is
// then in a piece that is not divided any more.
struct waits_in_first_piece {
  meeting* all;
  bool operator()(const int& one, const int& two) const {
    thread_local unsigned attended = 0;
    if (attended != all->number && &one - &two == 1 && one - two == 1) {
      attended = all->number;
      all->attend();
    }
    return one < two;
  }
};
work<int> sort(meeting& all, unsigned count) {
  constexpr unsigned grain = 24;
  std::vector<int> numbers(std::size_t{count} * grain * 8);
  std::iota(numbers.begin(), numbers.end(), 0);
  const waits_in_first_piece less{&all};
  const parallel_options options{.grain = grain};
  co_await parallel_sort(numbers, less, options);
  co_return std::is_sorted(numbers.begin(), numbers.end()) ? static_cast<int>(count) : -1;
}

work<int> by_lazies(meeting& all, unsigned count) {
  std::vector<lazy<int>> made;
  for (unsigned i = 0; i < count; ++i) {
    made.emplace_back([&all] {
      all.attend();
      return 1;
    });
  }
  int sum = 0;
  for (auto& one : made) sum += one.get();
  co_return sum;
}

struct attendant {
  meeting* all;
  int* came;
  void attend() {
    all->attend();
    *came = 1;
  }
};
struct teller {
  std::vector<ref<attendant>> others;
  void begin() {
    for (auto& one : others) one.tell<&attendant::attend>();
  }
};

task<int> wants(work<int> given) { co_return co_await std::move(given); }

int run_works(runtime& rt, work<int> (*make)(meeting&, unsigned), meeting& all, unsigned count) {
  auto result = rt.spawn(wants(make(all, count)));
  rt.run();
  return result.get();
}
int run_tasks(runtime& rt, meeting& all, unsigned count) {
  std::vector<int> came(count);
  const auto one = [](meeting& of, int& here) -> task<> {
    of.attend();
    here = 1;
    co_return;
  };
  const auto many = [](meeting& of, std::vector<int>& here, auto begin) -> task<> {
    for (int& each : here) troupe::spawn(begin(of, each));
    co_return;
  };
  rt.spawn(many(all, came, one));
  rt.run();
  return std::accumulate(came.begin(), came.end(), 0);
}
int run_actors(runtime& rt, meeting& all, unsigned count) {
  std::vector<int> came(count);
  std::vector<ref<attendant>> others;
  for (int& each : came) others.push_back(rt.spawn<attendant>(&all, &each));
  rt.run();
  rt.spawn<teller>(std::move(others)).tell<&teller::begin>();
  rt.run();
  return std::accumulate(came.begin(), came.end(), 0);
}
int run_lazies(runtime& rt, meeting& all, unsigned count) {
  return run_works(rt, &by_lazies, all, count);
}

struct kind {
  const char* name;
  std::function<int(runtime&, meeting&, unsigned)> run;
};
std::vector<kind> kinds() {
  const auto work_of = [](work<int> (*make)(meeting&, unsigned)) {
    return [make](runtime& rt, meeting& all, unsigned count) {
      return run_works(rt, make, all, count);
    };
  };
  return {{"fork_span", work_of(&fork_span)}, {"fork_halves", work_of(&halves)},
          {"parallel_for", work_of(&loop)},   {"parallel_reduce", work_of(&reduce)},
          {"parallel_sort", work_of(&sort)},  {"lazies", &run_lazies},
          {"spawned_tasks", &run_tasks},      {"told_actors", &run_actors}};
}

struct ramp_setting {
  kind of;
  troupe::policy policy;
  unsigned workers;
};
std::ostream& operator<<(std::ostream& out, const ramp_setting& one) {
  return out << one.of.name << '_' << one.workers;
}

class ramp : public testing::TestWithParam<ramp_setting> {
 protected:
  void SetUp() override {
    const char* forced = std::getenv("TROUPE_POLICY");
    if (forced != nullptr && *forced != '\0' && forced != std::string(name_of(GetParam().policy))) {
      GTEST_SKIP() << "TROUPE_POLICY is set: " << forced;
    }
  }
};

TEST_P(ramp, as_many_long_parts_as_workers_all_begin_before_one_ends) {
  const auto& [of, policy, workers] = GetParam();
  runtime_options options;
  options.workers = workers;
  options.policy = policy;
  runtime rt(options);
  for (int round = 0; round < 3; ++round) {
    meeting all(workers);
    const std::uint64_t before = rt.metrics().total.woken;
    EXPECT_EQ(of.run(rt, all, workers), static_cast<int>(workers));
    ASSERT_EQ(all.verdict(), "all began before one ended");
    // One wake-up for each part would suffice, but a worker that finds no part left sleeps again.
    // The shared queue wakes a thread for each turn.
    if (policy != troupe::policy::work_stealing) continue;
    EXPECT_LE(rt.metrics().total.woken - before, 3 * workers)
        << "more were woken than there was work for";
  }
}

std::vector<ramp_setting> ramp_settings() {
  std::vector<ramp_setting> all;
  for (const kind& one : kinds()) {
    for (const unsigned workers : slow ? std::vector{16u} : std::vector{2u, 16u, 64u, 128u}) {
      all.push_back({one, troupe::policy::work_stealing, workers});
    }
    all.push_back({one, troupe::policy::shared_queue, 16});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(ways, ramp, ::testing::ValuesIn(ramp_settings()), [](const auto& one) {
  return std::string(one.param.of.name) + "_" + name_of(one.param.policy) + "_" +
         std::to_string(one.param.workers);
});

}  // namespace
}  // namespace troupe::test
