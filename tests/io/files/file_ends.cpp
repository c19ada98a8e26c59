// Operations of files that end early: nothing leaks or hangs, and no buffer is touched later.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// A disk that answers only when it is told to.
class stuck_disk final : public faulty_kernel {
 public:
  stuck_disk() : faulty_kernel(call::close, -1, 0) {}
  int open(const char* path, int flags, mode_t permissions, bool at_once) noexcept override {
    if (at_once) return -EAGAIN;
    wait();
    return faulty_kernel::open(path, flags, permissions, false);
  }
  std::ptrdiff_t read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                         bool at_once) noexcept override {
    if (at_once) return -EAGAIN;
    wait();
    return faulty_kernel::read_at(fd, data, bytes, offset, false);
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    answers_ = true;
    changed_.notify_all();
  }
  // How many calls have come to the disk.
  std::atomic<int> asked{0};

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    set_and_wake(asked, asked.load() + 1);
    changed_.wait(lock, [this] { return answers_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool answers_ = false;
};

// Uses epoll, where threads of the side pool make the calls for files.
runtime_options with_one_thread_aside() {
  runtime_options chosen;
  chosen.workers = 2;
  chosen.io = io_backend::epoll;
  chosen.blocking_threads = 1;
  return chosen;
}

// Reads until it is told to stop, notes how the last read ended, and checks that no read writes to
// its buffer afterwards.
task<> reads_until_stopped(std::string path, std::stop_token end, std::atomic<int>& began,
                           std::string& came_to) {
  file one = co_await file::open(path);
  std::array<char, 4> buffer{'-', '-', '-', '-'};
  set_and_wake(began, 1);
  try {
    const std::size_t bytes = co_await one.read_at(0, buffer).stop(end);
    came_to = std::string(buffer.data(), bytes);
  } catch (const cancelled&) {
    came_to = "cancelled";
  }
}

TEST(io_file_ends, a_read_that_has_begun_ends_before_its_wait_does) {
  const scratch folder;
  const std::string path = folder.put("text", "1234");
  const int before = open_files();
  {
    stuck_disk disk;
    const io::replaced_kernel replaced(disk);
    std::stop_source end;
    std::atomic<int> began{0};
    std::string came_to;
    runtime rt(with_one_thread_aside());
    std::thread other([&] {
      wait_for(disk.asked, 1);  // waits for the call that opens the file
      end.request_stop();
      disk.answer();
    });
    rt.spawn(reads_until_stopped(path, end.get_token(), began, came_to));
    rt.run();
    other.join();
    EXPECT_TRUE(came_to == "1234" || came_to == "cancelled") << came_to;
  }
  EXPECT_EQ(open_files(), before);
}

// The disk is stuck with one call. The calls behind it are taken back at once, and so are their
// buffers.
TEST(io_file_ends, what_no_thread_has_begun_ends_at_once) {
  const scratch folder;
  const std::string path = folder.put("text", "1234");
  const int before = open_files();
  {
    stuck_disk disk;
    const io::replaced_kernel replaced(disk);
    runtime rt(with_one_thread_aside());
    std::string first;
    std::atomic<int> late{0};
    auto opens = [&]() -> task<> {
      file one = co_await file::open(path);
      std::array<char, 4> buffer;
      const std::size_t bytes = co_await one.read(buffer);
      first.assign(buffer.data(), bytes);
    };
    auto gives_up = [&]() -> task<> {
      for (int i = 0; i < 20; ++i) {
        try {
          file one = co_await file::open(path).timeout(100us);
          ADD_FAILURE() << "there is no thread for it";
        } catch (const timed_out&) {
          ++late;
        }
      }
      EXPECT_EQ(disk.asked.load(), 1);
      disk.answer();
    };
    rt.spawn(opens());
    wait_for(disk.asked, 1);
    rt.spawn(gives_up());
    rt.run();
    EXPECT_EQ(late.load(), 20);
    EXPECT_EQ(first, "1234");
  }
  EXPECT_EQ(open_files(), before);
}

TEST(io_file_ends, the_end_of_the_runtime_waits_for_what_has_begun_and_drops_the_rest) {
  const scratch folder;
  const std::string path = folder.put("text", "1234");
  const int before = open_files();
  {
    stuck_disk disk;
    const io::replaced_kernel replaced(disk);
    auto opens = [&]() -> task<> {
      // The file is either opened and closed, or never opened: the answer of the disk may come
      // before the runtime's end.
      file one = co_await file::open(path);
    };
    std::thread other;
    {
      runtime rt(with_one_thread_aside());
      for (int i = 0; i < 5; ++i) rt.spawn(opens());
      wait_for(disk.asked, 1);
      other = std::thread([&] { disk.answer(); });
    }
    other.join();
  }
  EXPECT_EQ(open_files(), before);
}

class io_file_storm : public io_conformance {};

// Timeouts meet calls of open() at every step.
TEST_P(io_file_storm, no_descriptor_is_lost_when_a_timeout_meets_an_opening) {
  const scratch folder;
  const std::string path = folder.put("text", "1234");
  const int before = open_files();
  {
    faulty_kernel slow(call::close, -1, 0);
    const io::replaced_kernel replaced(slow);
    std::atomic<int> opened{0}, late{0};
    auto opens = [&](int number) -> task<> {
      for (int i = 0; i < fewer(100); ++i) {
        try {
          file one = co_await file::open(path).timeout(
              std::chrono::microseconds(1 + (i * 7 + number * 13) % 200));
          ++opened;
          std::array<char, 4> buffer;
          const std::size_t bytes = co_await one.read_at(0, buffer).timeout(
              std::chrono::microseconds(1 + (i * 11) % 150));
          EXPECT_GT(bytes, 0u);
          co_await one.close().timeout(std::chrono::microseconds(1 + (i * 5) % 150));
        } catch (const timed_out&) {
          ++late;
        }
      }
    };
    runtime rt(options());
    for (int i = 0; i < 4; ++i) rt.spawn(opens(i));
    rt.run();
    EXPECT_GT(opened.load() + late.load(), 0);
  }
  EXPECT_EQ(open_files(), before);
}

// Tasks with operations under way end with their runtime.
TEST_P(io_file_storm, a_runtime_that_ends_leaves_nothing_open) {
  if (runs_inside_run(GetParam().on.policy))
    GTEST_SKIP() << "needs threads: its turns come in run() alone";
  const scratch folder;
  const std::string path = folder.put("text", std::string(100'000, 'x'));
  const int before = open_files();
  faulty_kernel slow(call::close, -1, 0);
  const io::replaced_kernel replaced(slow);
  for (int round = 0; round < fewer(20); ++round) {
    std::atomic<int> read{0};
    auto reads = [&]() -> task<> {
      for (;;) {
        file one = co_await file::open(path);
        std::string all(100'000, '\0');
        co_await one.read_exact(std::span<char>(all));
        EXPECT_EQ(all.back(), 'x');
        set_and_wake(read, read.load() + 1);
      }
    };
    runtime rt(options());
    for (int i = 0; i < 8; ++i) rt.spawn(reads());
    for (int seen = read.load(); seen < round; seen = read.load()) read.wait(seen);
  }
  EXPECT_EQ(open_files(), before);
}

// A file object that is destroyed during an operation stays open until that operation has ended.
TEST_P(io_file_storm, a_file_outlives_its_operations) {
  const scratch folder;
  const std::string path = folder.put("text", std::string(10'000, 'x'));
  const int before = open_files();
  {
    faulty_kernel slow(call::close, -1, 0);
    const io::replaced_kernel replaced(slow);
    std::atomic<int> read{0};
    auto reads = [&read](std::shared_ptr<file> from) -> task<> {
      std::string all(10'000, '\0');
      auto reading = from->read_exact_at(0, std::span<char>(all));
      *from = file();
      co_await std::move(reading);
      read += all == std::string(10'000, 'x') ? 1 : 0;
    };
    auto program = [&](runtime& rt) -> task<> {
      for (int i = 0; i < 20; ++i) {
        file opened = co_await file::open(path);
        rt.spawn(reads(std::make_shared<file>(std::move(opened))));
      }
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
    EXPECT_EQ(read.load(), 20);
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_file_storm);

}  // namespace troupe::test
