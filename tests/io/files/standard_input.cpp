// Standard input and output as a pipe, a file or a terminal.
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// Replaces one of the program's standard streams for as long as the object exists.
class replaced_stream {
 public:
  replaced_stream(int which, int by) : which_(which), before_(::fcntl(which, F_DUPFD_CLOEXEC, 3)) {
    ::dup2(by, which);
  }
  replaced_stream(const replaced_stream&) = delete;
  replaced_stream& operator=(const replaced_stream&) = delete;
  ~replaced_stream() {
    if (before_ < 0) {
      ::close(which_);
      return;
    }
    ::dup2(before_, which_);
    ::close(before_);
  }

 private:
  int which_, before_;
};

class io_standard : public io_conformance {
 protected:
  static task<> reads_all(std::string& all, std::string stop_at) {
    pipe_stream in = pipe_stream::standard_input();
    std::array<char, 700> part;
    for (;;) {
      const std::size_t bytes = co_await in.read(part);
      if (bytes == 0) co_return;
      all.append(part.data(), bytes);
      if (!stop_at.empty() && all.ends_with(stop_at)) co_return;
    }
  }
  // Returns what the program reads from standard input; `beside` runs when the read has begun to
  // wait.
  template <class Beside>
  std::string read(int fd, Beside beside, std::string stop_at = {}) {
    std::string all;
    const replaced_stream in(STDIN_FILENO, fd);
    const int mode = ::fcntl(fd, F_GETFL);
    {
      runtime rt(options());
      rt.spawn(reads_all(all, std::move(stop_at)));
      rt.after(3ms, beside);
      rt.run();
    }
    // The mode is unchanged, since other processes use the file description, too.
    EXPECT_EQ(::fcntl(fd, F_GETFL), mode);
    return all;
  }
};

TEST_P(io_standard, a_pipe_is_read_as_it_comes_and_to_its_end) {
  const int before = open_files();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "early ", 6), 6);
  EXPECT_EQ(read(ends[0],
                 [&ends] {
                   EXPECT_EQ(::write(ends[1], "late", 4), 4);
                   ::close(ends[1]);
                 }),
            "early late");
  ::close(ends[0]);
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_standard, a_file_is_read_to_its_end) {
  const scratch folder;
  const std::string text(5'000, 't'), path = folder.put("text", text);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read(fd, [] {}), text);
  ::close(fd);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read(nothing, [] {}), "");
  ::close(nothing);
}

TEST_P(io_standard, a_terminal_is_read_line_by_line) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master), 0);
  ASSERT_EQ(::unlockpt(master), 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  EXPECT_EQ(read(
                terminal, [master] { EXPECT_EQ(::write(master, "one\ntwo\n", 8), 8); }, "two\n"),
            "one\ntwo\n");
  EXPECT_EQ(read(terminal, [master] { EXPECT_EQ(::write(master, "three\n\x04", 7), 7); }),
            "three\n");
  ::close(terminal);
  ::close(master);
}

TEST_P(io_standard, output_goes_to_a_file_or_a_pipe) {
  const scratch folder;
  const std::string path = folder / "out";
  auto writes = []() -> task<> {
    pipe_stream out = pipe_stream::standard_output();
    co_await out.write_all(std::string(20'000, 'o'));
  };
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  {
    std::fflush(stdout);
    const replaced_stream out(STDOUT_FILENO, fd);
    runtime rt(options());
    rt.spawn(writes());
    rt.run();
  }
  ::close(fd);
  EXPECT_EQ(scratch::text_of(path), std::string(20'000, 'o'));
}

}  // namespace

TROUPE_IO_TEST_EACH(io_standard);

}  // namespace troupe::test
