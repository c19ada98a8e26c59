// Resources: counted handles, bytes that are given back, and a limit that stops a job that would
// not fit.
#include <cstdlib>
#include <numeric>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

class resources : public conformance {};

using samples = std::vector<float>;

TEST_P(resources, count_their_bytes_until_the_last_handle_goes) {
  runtime rt(options());
  {
    resource<samples> one(samples(1000, 1.0f));
    EXPECT_EQ(one.bytes(), sizeof(samples) + 4000);
    resource<samples> two = one;
    EXPECT_EQ(rt.metrics().resource_bytes, one.bytes());
    one.release();
    EXPECT_THROW(one.get(), usage_error);
    EXPECT_FALSE(one);
    EXPECT_EQ(two->size(), 1000u);
    const resource<int> small(7, 1 << 20);
    EXPECT_EQ(rt.metrics().resource_bytes, two.bytes() + (1u << 20));
    EXPECT_EQ(*small, 7);
  }
  EXPECT_EQ(rt.metrics().resource_bytes, 0u);
  EXPECT_EQ(rt.metrics().resource_bytes_peak, sizeof(samples) + 4000 + (1u << 20));
}

TEST_P(resources, of_more_bytes_than_there_are_addresses_are_refused) {
  runtime rt(options());
  const resource<int> small(7, 100);
  EXPECT_THROW(resource<samples>(samples(1000, 1.0f), SIZE_MAX), usage_error);
  EXPECT_THROW(resource<int>(7, SIZE_MAX - 50), usage_error);
  EXPECT_THROW(resource<int>(7, (std::size_t{1} << 47) + 1), usage_error);
  EXPECT_EQ(rt.metrics().resource_bytes, 100u);
  EXPECT_EQ(resource<int>(7, std::size_t{1} << 47).bytes(), std::size_t{1} << 47);
  EXPECT_EQ(rt.metrics().resource_bytes, 100u);
}

TEST_P(resources, outlive_their_runtime_and_need_none) {
  resource<int> kept;
  {
    runtime rt(options());
    kept = resource<int>(5, 100);
  }
  EXPECT_EQ(*kept, 5);
  kept = resource<int>(6, 100);
  EXPECT_EQ(*kept, 6);
}

// For example, a blocking call reads files.
TEST_P(resources, that_a_blocking_call_makes_count_as_well_and_so_do_its_lazies) {
  for (const bool given_by_task : {false, true}) {
    runtime rt(options());
    const auto loads = [] {
      const lazy one([] { return 1; });
      return resource<int>(one.get() + 6, 100);
    };
    auto awaits = [loads]() -> task<resource<int>> { co_return co_await blocking(loads); };
    auto loaded = given_by_task ? rt.spawn(awaits()) : rt.blocking(loads);
    rt.run();
    const resource<int> held = loaded.get();
    EXPECT_EQ(*held, 7);
    EXPECT_EQ(rt.metrics().resource_bytes, 100u);
    EXPECT_EQ(rt.metrics().total.lazies, 1u);
  }
}

// Groups of blocks are mixed, and each group then gives up its blocks. All lazies are queued at
// once. Without a limit the workers would make nearly all blocks before the first group is mixed.
struct render {
  std::size_t groups, blocks_a_group, block_bytes;
  double run(std::atomic<long>& made) const {
    std::vector<lazy<double>> mixes;
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<lazy<resource<samples>>> blocks;
      for (std::size_t b = 0; b < blocks_a_group; ++b) {
        blocks.emplace_back([&made, bytes = block_bytes, value = static_cast<float>(g + b)] {
          ++made;
          return resource<samples>(samples(bytes / sizeof(float), value));
        });
      }
      mixes.emplace_back([blocks = std::move(blocks)]() mutable {
        double sum = 0;
        for (auto& block : blocks) {
          sum += block.get()->front() + block.get()->back();
          block.release();
        }
        return sum;
      });
    }
    double all = 0;
    for (auto& mix : mixes) {
      all += mix.get();
      mix.release();
    }
    return all;
  }
  double expected() const {
    double all = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      for (std::size_t b = 0; b < blocks_a_group; ++b) all += 2.0 * static_cast<double>(g + b);
    }
    return all;
  }
};

TEST_P(resources, a_render_stays_near_the_limit_whatever_it_makes_in_total) {
  const bool deep = std::getenv("TROUPE_DEEP") != nullptr && !slow;
  // A deep run makes 20 GB in blocks of 8 MB under a limit below 1 GB; otherwise a hundredth of
  // that. Every byte is written.
  const render what = deep ? render{320, 8, 8u << 20} : render{40, 8, 640u << 10};
  const std::size_t limit = deep ? 512u << 20 : 5u << 20;
  auto chosen = options();
  chosen.resource_bytes = limit;
  runtime rt(chosen);
  std::atomic<long> made{0};
  EXPECT_EQ(what.run(made), what.expected());
  EXPECT_EQ(made.load(), static_cast<long>(what.groups * what.blocks_a_group));
  rt.run();
  // A thread that mixes a group may have all of its blocks at once: each worker, and this thread.
  const std::size_t at_once = (workers() + 1) * (what.blocks_a_group + 1) * (what.block_bytes + 64);
  EXPECT_LE(rt.metrics().resource_bytes_peak, limit + at_once);
  EXPECT_EQ(rt.metrics().resource_bytes, 0u);
}

// The worst consumer: it comes when the workers have done all that the limit lets them do.
TEST_P(resources, workers_do_not_run_ahead_of_who_consumes) {
  // A deep run makes 20 GB in blocks of 8 MB under a limit below 1 GB.
  const bool deep = std::getenv("TROUPE_DEEP") != nullptr && !slow;
  const std::size_t blocks = deep ? 2560 : 100, block_bytes = deep ? 8u << 20 : 64u << 10,
                    limit = (deep ? 64 : 10) * block_bytes;
  auto chosen = options();
  chosen.resource_bytes = limit;
  runtime rt(chosen);
  std::vector<lazy<resource<samples>>> all;
  for (std::size_t i = 0; i < blocks; ++i) {
    all.emplace_back([i, block_bytes] {
      return resource<samples>(samples(block_bytes / sizeof(float), static_cast<float>(i)));
    });
  }
  const std::size_t most = limit + (workers() + 1) * (block_bytes + 64);
  for (std::size_t i = 0; i < blocks; ++i) {
    EXPECT_EQ(all[i].get()->back(), static_cast<float>(i));
    all[i].release();
    if (i % 16 == 0) rt.run();
    ASSERT_LE(rt.metrics().resource_bytes, most);
  }
  rt.run();
  EXPECT_LE(rt.metrics().resource_bytes_peak, most);
  // The workers did go as far ahead as they may.
  EXPECT_GT(rt.metrics().resource_bytes_peak, limit);
  EXPECT_EQ(rt.metrics().resource_bytes, 0u);
}

TEST_P(resources, past_the_limit_what_is_wanted_runs_nevertheless) {
  auto chosen = options();
  chosen.resource_bytes = 10;
  runtime rt(chosen);
  const resource<int> full(1, 1000);
  std::vector<lazy<resource<int>>> more;
  for (int i = 0; i < 50; ++i) more.emplace_back([i] { return resource<int>(i, 1000); });
  auto reads = [](lazy<resource<int>> wanted) -> task<int> {
    const resource<int>& value = co_await wanted;
    co_return *value;
  };
  std::vector<future<int>> results;
  for (std::size_t i = 0; i < 25; ++i) results.push_back(rt.spawn(reads(more[i])));
  for (int i = 25; i < 50; ++i) EXPECT_EQ(*more[static_cast<std::size_t>(i)].get(), i);
  rt.run();
  for (int i = 0; i < 25; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].get(), i);
}

// A thread that wants a lazy may take, run and free it while a worker sets it aside.
// ThreadSanitizer would see a race.
TEST_P(resources, that_are_wanted_while_they_are_set_aside_run_once) {
  auto chosen = options();
  chosen.resource_bytes = 1;
  runtime rt(chosen);
  const resource<int> full(1, 1000);
  std::atomic<int> made{0};
  const int rounds = fewer(2'000);
  rt.post([&made] {
    for (int i = 0; i < rounds; ++i) {
      const lazy first([] {});
      std::vector<lazy<resource<int>>> more;
      for (int k = 0; k < 4; ++k) {
        more.emplace_back([&made] {
          ++made;
          return resource<int>(0, 10);
        });
      }
      first.get();  // submits the other lazies
      for (auto& one : more) {
        EXPECT_EQ(*one.get(), 0);
        one.release();
      }
    }
  });
  rt.run();
  EXPECT_EQ(made.load(), 4 * rounds);
}

TEST_P(resources, what_was_set_aside_runs_when_memory_is_free_again) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  auto chosen = options();
  chosen.resource_bytes = 10;
  runtime rt(chosen);
  resource<int> full(1, 1000);
  std::atomic<int> made{0}, beside{0};
  std::vector<lazy<resource<int>>> more;
  for (int i = 0; i < 5; ++i) {
    more.emplace_back([&made] {
      set_and_wake(made, made.load() + 1);
      return resource<int>(0, 1);
    });
  }
  std::vector<lazy<void>> frees;
  for (int i = 0; i < 5; ++i) frees.emplace_back([&beside] { ++beside; });
  const lazy first([] { return 1; });
  EXPECT_EQ(first.get(), 1);  // submits all of them
  rt.run();
  EXPECT_EQ(beside.load(), 5);
  EXPECT_EQ(made.load(), 0);
  EXPECT_EQ(rt.metrics().lazies_queued, 5u);
  full.release();
  rt.run();
  EXPECT_EQ(made.load(), 5);
  EXPECT_EQ(rt.metrics().lazies_queued, 0u);
}

}  // namespace

TROUPE_TEST_EACH(resources, all_settings);

}  // namespace troupe::test
