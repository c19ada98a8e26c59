#include "base/side_channels/bounded_write.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/clock.hpp"

namespace troupe::base {
namespace {

TEST(bounded_write, gives_a_reader_that_takes_nothing_up) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string text(std::size_t{1} << 20, 'x');
  const std::int64_t before_ns = now_ns();
  const bounded_write_result result = bounded_write(ends[1], text, 30);
  EXPECT_EQ(result.error, ETIMEDOUT);
  EXPECT_GT(result.bytes, 0u);
  EXPECT_LT(result.bytes, text.size());
  EXPECT_GE(now_ns() - before_ns, 30'000'000);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(bounded_write, to_a_pipe_without_a_reader_raises_no_signal) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  EXPECT_EQ(bounded_write(ends[1], "x", 30).error, EPIPE);
  ::close(ends[1]);
  EXPECT_EQ(bounded_write(-1, "x", 30).error, ETIMEDOUT);  // poll() ignores such a descriptor
}

TEST(bounded_write, to_a_full_device_or_a_file_at_its_limit_raises_no_signal) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(bounded_write(full, "x", 30).error, ENOSPC);
  ::close(full);
  std::string name = testing::TempDir() + "troupe_limit_XXXXXX";
  const int file = ::mkstemp(name.data());
  ASSERT_GE(file, 0);
  const ::pid_t child = ::fork();
  if (child == 0) {
    const ::rlimit limit{10, 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const bounded_write_result result = bounded_write(file, "more than ten bytes", 30);
    ::_exit(result.bytes == 10 && result.error == EFBIG ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  ::close(file);
  ::unlink(name.c_str());
}

}  // namespace
}  // namespace troupe::base
