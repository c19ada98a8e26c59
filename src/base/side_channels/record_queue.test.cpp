#include "base/side_channels/record_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_name.hpp"

namespace troupe::base {
namespace {

struct numbered {
  numbered(unsigned on_thread, int nth) noexcept : thread(on_thread), number(nth) {}
  numbered* next = nullptr;
  unsigned thread;
  int number;
};
using queue = record_queue<numbered>;

// Runs `work` on a thread with that number of a worker.
template <class Work>
void run_as_worker(unsigned number, Work work) {
  std::thread([&] {
    worker_number = number;
    work();
  }).join();
}

void put(queue& to, int count) {
  for (int i = 0; i < count; ++i) to.put(std::make_unique<numbered>(worker_number, i));
}

std::size_t take_and_forget(queue& from) {
  const std::size_t count = queue::free_all(from.take_all());
  from.forget(count);
  return count;
}

TEST(record_queue, holds_as_many_records_as_its_limit) {
  queue records;
  records.limit(1'000, 512);
  put(records, 1'000);
  EXPECT_EQ(records.waiting(), 1'000u);
  EXPECT_EQ(records.dropped(), 0u);
  put(records, 1);
  EXPECT_EQ(records.waiting(), 1'000u);
  EXPECT_EQ(records.dropped(), 1u);
  EXPECT_EQ(take_and_forget(records), 1'000u);
  put(records, 1);
  EXPECT_EQ(take_and_forget(records), 1u);
  EXPECT_EQ(records.waiting(), 0u);
}

TEST(record_queue, gives_the_unused_permits_of_a_thread_to_another_one) {
  queue records;
  records.limit(16'384, 512);
  ASSERT_GT(queue::permits_at_once(16'384, 512), 1u);
  for (unsigned worker = 1; worker < 10; ++worker) run_as_worker(worker, [&] { put(records, 1); });
  put(records, 16'384 - 9);
  EXPECT_EQ(records.waiting(), 16'384u);
  EXPECT_EQ(records.dropped(), 0u);
  run_as_worker(3, [&] { put(records, 1); });
  EXPECT_EQ(records.dropped(), 1u);
  EXPECT_EQ(take_and_forget(records), 16'384u);
}

TEST(record_queue, holds_no_permits_of_an_earlier_limit) {
  queue records;
  records.limit(16'384, 512);
  put(records, 1);
  EXPECT_EQ(take_and_forget(records), 1u);
  records.limit(2, 1);
  put(records, 3);
  EXPECT_EQ(records.waiting(), 2u);
  EXPECT_EQ(records.dropped(), 1u);
  records.limit(0, 1);
  EXPECT_EQ(records.dropped(), 0u);
  EXPECT_EQ(take_and_forget(records), 2u);
  put(records, 1);
  EXPECT_EQ(records.waiting(), 0u);
}

TEST(record_queue, wakes_its_thread_at_each_batch) {
  for (const std::size_t batch : {1u, 10u, 512u}) {
    queue records;
    records.limit(100'000, batch);
    const std::uint32_t before = records.wakes();
    put(records, static_cast<int>(batch) - 1);
    EXPECT_EQ(records.wakes(), before);
    put(records, 1);
    EXPECT_EQ(records.wakes(), before + 1);
    put(records, static_cast<int>(batch));
    EXPECT_EQ(records.wakes(), before + 2);
    take_and_forget(records);
  }
}

TEST(record_queue, a_full_queue_has_woken_its_thread) {
  for (const std::size_t batch : {512u, 460u, 448u, 64u}) {
    queue records;
    records.limit(512, batch);
    const std::uint32_t before = records.wakes();
    run_as_worker(1, [&] { put(records, 255); });
    run_as_worker(2, [&] { put(records, 257); });
    EXPECT_EQ(records.waiting(), 512u);
    EXPECT_NE(records.wakes(), before) << batch;
    take_and_forget(records);
  }
}

TEST(record_queue, gives_the_records_of_a_thread_in_their_order) {
  queue records;
  records.limit(100, 1);
  for (const unsigned worker : {2u, 1u, 2u + static_cast<unsigned>(queue::shard_count)})
    run_as_worker(worker, [&] { put(records, 10); });
  numbered* const first = records.take_all();
  std::array<int, 2 * queue::shard_count> next{};
  for (const numbered* record = first; record != nullptr; record = record->next)
    EXPECT_EQ(record->number, next[record->thread]++);
  records.forget(queue::free_all(first));
}

// Of four threads, two have one shard. The reader takes records meanwhile.
TEST(record_queue, loses_no_record_of_several_threads) {
  constexpr unsigned threads = 4;
  constexpr int each = 20'000;
  queue records;
  records.limit(1'024, 64);
  std::atomic<unsigned> running{threads};
  std::vector<std::thread> all;
  for (unsigned thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      worker_number = thread == 0 ? static_cast<unsigned>(queue::shard_count) + 1 : thread;
      put(records, each);
      --running;
      records.wake();
    });
  }
  std::array<int, 2 * queue::shard_count> after{};
  std::size_t taken = 0;
  for (bool is_last = false; !is_last;) {
    const std::uint32_t seen = records.wakes();
    is_last = running == 0;
    numbered* const first = records.take_all();
    for (const numbered* record = first; record != nullptr; record = record->next) {
      EXPECT_GE(record->number, after[record->thread]);
      after[record->thread] = record->number + 1;
    }
    const std::size_t count = queue::free_all(first);
    EXPECT_LE(count, 1'024u);
    records.forget(count);
    taken += count;
    if (!is_last) records.wait(seen, std::chrono::seconds(10));
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(taken + records.dropped(), std::size_t{threads} * each);
  EXPECT_EQ(records.waiting(), 0u);
}

}  // namespace
}  // namespace troupe::base
