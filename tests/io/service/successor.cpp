// Sockets are handed to a new process, which is this test program again.
#include "troupe/io/service/successor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "support/io.hpp"
#include "support/scratch.hpp"
#include "troupe/io/service/inherited_sockets.hpp"
#include "troupe/io/service/notify.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using service::inherited_sockets;
using service::successor;

class service_successor : public io_conformance {
 protected:
  void SetUp() override {
    io_conformance::SetUp();
    if (!threaded()) GTEST_SKIP() << "needs threads: the sockets are the system's";
  }
  void TearDown() override { ::unsetenv("TROUPE_TEST_CHILD"); }
  // As run(). The library waits in the background for the end of processes that were given up, and
  // has descriptors for that.
  void run_with_rest(task<> what) const {
    const int before = open_files();
    {
      runtime rt(options());
      rt.spawn(std::move(what));
      rt.run();
    }
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (open_files() != before && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    EXPECT_EQ(open_files(), before);
  }
};

constexpr const char* variable = "TROUPE_TEST_CHILD";
const std::vector<std::string> child_arguments{"--gtest_filter=service_child.plays_the_successor",
                                               "--gtest_brief=1"};

template <class Stream>
task<> answer(Stream peer, std::string text) {
  co_await peer.write_all(text);
}
task<std::string> said_by(tcp_stream peer) {
  std::array<char, 100> text{};
  const std::size_t bytes = co_await peer.read(text);
  co_return std::string(text.data(), bytes);
}

// What the new process does: one answer on each socket.
task<> serve_once(inherited_sockets all) {
  std::optional<tcp_listener> web = all.tcp("web");
  std::optional<unix_listener> local = all.unix_socket("local");
  if (!web) throw usage_error("no socket named web");
  service::ready();
  tcp_stream peer = co_await web->accept();
  co_await answer(std::move(peer), "new" + std::to_string(all.size()));
  if (!local) co_return;
  unix_stream near = co_await local->accept();
  co_await answer(std::move(near), "new");
}

TEST(service_child, plays_the_successor) {
  const char* const part = std::getenv(variable);
  if (part == nullptr) GTEST_SKIP() << "needs a parent: other tests of its file run it";
  const std::string plays = part;
  auto all = inherited_sockets::take();
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr);
  EXPECT_EQ(std::getenv("TROUPE_PREDECESSOR"), nullptr);
  if (plays == "fails") std::_Exit(3);
  if (plays == "is silent") {
    for (;;) ::pause();
  }
  runtime rt(runtime_options{});
  rt.spawn(serve_once(std::move(all)));
  rt.run();
}

TEST_P(service_successor, accepts_on_the_sockets_of_the_old_process) {
  ::setenv(variable, "serves", 1);
  std::string said;
  run([](std::string& into) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    successor next;
    next.hand(listener, "web");
    process started = co_await next.start("/proc/self/exe", child_arguments);
    // Only the new process accepts.
    listener.close();
    into = co_await said_by(co_await tcp_stream::connect(at));
    const exit_status ended = co_await started.wait();
    into += ", " + ended.to_string();
  }(said));
  EXPECT_EQ(said, "new0, exited with 0");
}

TEST_P(service_successor, takes_the_file_of_a_unix_socket_over) {
  ::setenv(variable, "serves", 1);
  const scratch folder;
  const std::string path = folder / "socket";
  std::string said;
  run([](std::string at, std::string& into) -> task<> {
    auto web = tcp_listener::listen(endpoint::loopback(0));
    auto local = unix_listener::listen(at);
    successor next;
    next.hand(web, "web");
    next.hand(local, "local");
    process started = co_await next.start("/proc/self/exe", child_arguments);
    local.close();
    into = co_await said_by(co_await tcp_stream::connect(web.local()));
    unix_stream peer = unix_stream::connect(at);
    std::array<char, 100> text{};
    const std::size_t bytes = co_await peer.read(text);
    into += " " + std::string(text.data(), bytes);
    static_cast<void>(co_await started.wait());
  }(path, said));
  EXPECT_EQ(said, "new0 new");
  struct stat found {};
  EXPECT_NE(::stat(path.c_str(), &found), 0) << "the new process leaves its file behind";
}

TEST_P(service_successor, that_fails_leaves_all_as_it_was) {
  const scratch folder;
  const std::string path = folder / "socket";
  std::string why;
  run_with_rest([](std::string at, std::string& into) -> task<> {
    auto web = tcp_listener::listen(endpoint::loopback(0));
    auto local = unix_listener::listen(at);
    {
      successor next;
      next.hand(web, "web");
      next.hand(local);
      ::setenv(variable, "fails", 1);
      try {
        static_cast<void>(co_await next.start("/proc/self/exe", child_arguments));
      } catch (const io_error& failure) {
        into = failure.what();
      }
      try {
        static_cast<void>(co_await next.start("/nonexistent/program", {}));
      } catch (const io_error& failure) {
        into += std::string("; ") + failure.what();
      }
      ::setenv(variable, "is silent", 1);
      try {
        static_cast<void>(co_await next.start("/proc/self/exe", child_arguments, 200ms));
      } catch (const timed_out&) {
        into += "; late";
      }
      // The old one still accepts, and a later try succeeds.
      auto mine = spawn(said_by(co_await tcp_stream::connect(web.local())));
      co_await answer(co_await web.accept(), "old");
      into += "; " + co_await std::move(mine);
      unix_stream near = unix_stream::connect(at);
      unix_stream accepted = co_await local.accept();
      static_cast<void>(accepted);
    }
  }(path, why));
  EXPECT_NE(why.find("exited with 3"), std::string::npos) << why;
  EXPECT_NE(why.find("/nonexistent/program"), std::string::npos) << why;
  EXPECT_TRUE(why.ends_with("; late; old")) << why;
  struct stat found {};
  EXPECT_NE(::stat(path.c_str(), &found), 0) << "the successor object leaves the file behind";
}

TEST(service_sockets, are_none_without_the_variables) {
  auto all = inherited_sockets::take();
  EXPECT_EQ(all.size(), 0u);
  EXPECT_FALSE(all.tcp());
  EXPECT_FALSE(all.unix_socket());
}

TEST(service_sockets, adopt_refuses_what_does_not_listen) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_THROW(tcp_listener::adopt(fd), option_error);
  EXPECT_THROW(unix_listener::adopt(fd), option_error);
  EXPECT_THROW(tcp_listener::adopt(-1), option_error);
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_THROW(unix_listener::adopt(fd), option_error);
  EXPECT_NO_THROW(tcp_listener::adopt(fd));  // and closes it
  EXPECT_THROW(tcp_listener::adopt(fd), option_error);
  EXPECT_THROW(successor().hand(tcp_listener::listen(endpoint::loopback(0)), "a:b"), option_error);
}

TROUPE_IO_TEST_EACH(service_successor);

}  // namespace
}  // namespace troupe::test
