// Unix sockets: streams by a path, and what happens to the file at that path.
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_unix : public io_conformance {
 protected:
  void SetUp() override {
    io_conformance::SetUp();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    static_cast<void>(::unlink(path().c_str()));
    static_cast<void>(::rmdir(folder_.c_str()));
  }
  std::string path() const { return folder_ + "/socket"; }

 private:
  std::string folder_ = testing::TempDir() + "troupe.XXXXXX";
};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

task<> echo_once(unix_listener listener) {
  unix_stream peer = co_await listener.accept();
  std::array<char, 1000> buffer;
  for (;;) {
    const std::size_t bytes = co_await peer.read(buffer);
    if (bytes == 0) break;
    co_await peer.write_all(std::string_view(buffer.data(), bytes));
  }
}

task<> ask(std::string path, std::string& got) {
  unix_stream peer = unix_stream::connect(path);
  const std::string sent(50, 'u');  // the simulated network may keep no more than 100
  std::string part(sent.size(), '\0');
  for (int i = 0; i < 20; ++i) {
    co_await peer.write_all(std::string_view(sent));
    co_await peer.read_exact(std::span(part));
    got += part;
  }
  peer.shutdown_write();
  std::array<char, 1> end;
  const std::size_t behind = co_await peer.read(end);
  EXPECT_EQ(behind, 0U);
}

TEST_P(io_unix, what_is_echoed_is_what_was_sent) {
  for (const std::string& at :
       {path(), std::string("\0troupe.test.", 13) + std::to_string(::getpid())}) {
    std::string got;
    {
      runtime rt(options());
      auto both = [](runtime& runs, std::string where, std::string& back, bool file) -> task<> {
        auto listener = unix_listener::listen(where);
        EXPECT_EQ(exists(where), file);
        runs.spawn(echo_once(std::move(listener)));
        co_await ask(where, back);
      };
      rt.spawn(both(rt, at, got, threaded() && at.front() != '\0'));
      rt.run();
    }
    EXPECT_EQ(got, std::string(1000, 'u'));
    EXPECT_FALSE(exists(path())) << "who made it removes it";
  }
}

template <class Call>
std::errc error_of(Call call) {
  try {
    call();
    return {};
  } catch (const io_error& e) {
    return static_cast<std::errc>(e.code().value());
  }
}
std::errc error_of_listen(const std::string& path) {
  return error_of([&] { unix_listener::listen(path); });
}
std::errc error_of_connect(const std::string& path) {
  return error_of([&] { unix_stream::connect(path); });
}

TEST_P(io_unix, each_refusal_has_its_own_answer) {
  runtime rt(options());
  auto use = [](std::string at) -> task<> {
    EXPECT_EQ(error_of_connect(at), std::errc::no_such_file_or_directory);
    EXPECT_THROW(unix_stream::connect(""), option_error);
    EXPECT_THROW(unix_stream::connect(std::string(108, 'x')), option_error);
    EXPECT_THROW(unix_stream::connect(at + std::string("\0x", 2)), option_error);
    EXPECT_THROW(unix_listener::listen(std::string(108, 'x')), option_error);
    {
      auto listener = unix_listener::listen(at);
      bool was_late = false;
      try {
        co_await listener.accept().timeout(1ms);
      } catch (const timed_out&) {
        was_late = true;
      }
      EXPECT_TRUE(was_late);
      EXPECT_EQ(error_of_listen(at), std::errc::address_in_use);
    }
    EXPECT_EQ(error_of_listen(at), std::errc{}) << "the one before has gone";
  };
  rt.spawn(use(path()));
  rt.run();
}

TEST_P(io_unix, what_a_dead_listener_left_is_replaced_and_nothing_else) {
  if (!threaded()) GTEST_SKIP() << "needs threads: files are the machine's";
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path().c_str(), sizeof name.sun_path - 1);
  const int dead = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ::close(dead);
  EXPECT_EQ(error_of_connect(path()), std::errc::connection_refused);
  EXPECT_EQ(error_of_listen(path()), std::errc{});
  std::ofstream(path()) << "a file of somebody's";
  EXPECT_EQ(error_of_listen(path()), std::errc::address_in_use);
  EXPECT_TRUE(exists(path()));
  static_cast<void>(::unlink(path().c_str()));
  {
    // A listener that closes leaves the file of another listener that has taken its place.
    auto first = unix_listener::listen(path());
    static_cast<void>(::unlink(path().c_str()));
    auto second = unix_listener::listen(path());
    first.close();
    EXPECT_TRUE(exists(path()));
    unix_listener moved = std::move(second);
    EXPECT_TRUE(moved.is_open());
  }
  EXPECT_FALSE(exists(path()));
}

// Whatever the umask is.
TEST_P(io_unix, the_file_has_the_permissions_of_the_options) {
  if (!threaded()) GTEST_SKIP() << "needs threads: files are the machine's";
  const auto permissions = [&](const listen_options& options) {
    const auto listener = unix_listener::listen(path(), options);
    struct stat found {};
    EXPECT_EQ(::stat(path().c_str(), &found), 0);
    return found.st_mode & 07777;
  };
  const mode_t before = ::umask(022);
  listen_options options;
  EXPECT_EQ(permissions(options), 0755u);
  for (const unsigned wanted : {0600u, 0660u, 0666u, 0777u}) {
    options.permissions = wanted;
    EXPECT_EQ(permissions(options), wanted);
  }
  ::umask(before);
  options.permissions = 0600;
  EXPECT_NO_THROW(unix_listener::listen(std::string("\0troupe", 7) + path(), options));
}

// The end of the stream has come before its last bytes are taken.
TEST_P(io_unix, the_end_comes_behind_what_is_leased) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the simulated network may hold no more than 100 bytes";
  auto program = [this]() -> task<> {
    auto listener = unix_listener::listen(path());
    unix_stream one = unix_stream::connect(path());
    unix_stream peer = co_await listener.accept();
    for (const std::size_t bytes : {6'000u, 30'000u}) {
      co_await one.write_all(std::string(bytes, 'x')).timeout(10s);
      if (bytes == 30'000u) one.shutdown_write();
      std::size_t got = 0;
      while (got < bytes) {
        const io_buffer some = co_await peer.read_some().timeout(10s);
        got += some.size();
      }
      EXPECT_EQ(got, bytes);
    }
    const io_buffer end = co_await peer.read_some().timeout(10s);
    EXPECT_TRUE(end.empty());
  };
  run(program());
}

}  // namespace

TROUPE_IO_TEST_EACH(io_unix);

}  // namespace troupe::test
