// What a service tells its manager.
#include "troupe/io/service/notify.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "support/scratch.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {
namespace {

// A manager's socket, and the variable that names it.
class manager {
 public:
  explicit manager(const std::string& name)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (at.sun_path[0] == '@') at.sun_path[0] = '\0';
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), bytes), 0) << name;
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  manager(const manager&) = delete;
  ~manager() {
    ::close(fd_);
    ::unsetenv("NOTIFY_SOCKET");
  }
  std::string heard() const { return receive(); }
  // Waits for it.
  std::string heard_next() const {
    ::pollfd ready{fd_, POLLIN, 0};
    constexpr int limit_ms = 60'000;
    return ::poll(&ready, 1, limit_ms) == 1 ? receive() : "nothing within a minute";
  }

 private:
  std::string receive() const {
    std::array<char, 1000> text{};
    const ssize_t bytes = ::recv(fd_, text.data(), text.size(), 0);
    return bytes < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(bytes));
  }

  int fd_;
};

TEST(service_notify, tells_the_manager) {
  const scratch folder;
  for (const std::string& name :
       {folder / "notify", "@troupe-notify-" + std::to_string(::getpid())}) {
    const manager systemd(name);
    EXPECT_EQ(systemd.heard(), "nothing");
    service::ready();
    EXPECT_EQ(systemd.heard(), "READY=1\n");
    service::stopping();
    EXPECT_EQ(systemd.heard(), "STOPPING=1\n");
    service::reloading();
    const std::string said = systemd.heard();
    EXPECT_TRUE(said.starts_with("RELOADING=1\nMONOTONIC_USEC=")) << said;
    EXPECT_GT(std::stoull(said.substr(said.rfind('=') + 1)), 0u) << said;
    EXPECT_TRUE(service::notify("STATUS=12 users"));
    EXPECT_EQ(systemd.heard(), "STATUS=12 users");
  }
}

TEST(service_notify, does_nothing_without_a_manager) {
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(service::notify("READY=1"));
  EXPECT_NO_THROW(service::ready());
}

// The main path neither stops nor waits, whatever the socket is.
TEST(service_notify, never_fails_when_the_manager_cannot_be_told) {
  for (const std::string& name : {std::string("/nonexistent/socket"), std::string("vsock:1:2"),
                                  "/" + std::string(200, 'x'), std::string("/dev/null")}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_FALSE(service::notify("STATUS=lost")) << name;
    EXPECT_NO_THROW(service::ready());
    EXPECT_NO_THROW(service::reloading());
    EXPECT_NO_THROW(service::stopping());
  }
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(service::notify("STATUS=nobody waits for the messages before"));
}

TEST(service_notify, drops_a_message_that_no_datagram_holds) {
  const scratch folder;
  const manager systemd(folder / "notify");
  EXPECT_FALSE(service::notify(std::string(std::size_t{16} << 20, 'x')));
  EXPECT_TRUE(service::notify("STATUS=small"));
  EXPECT_EQ(systemd.heard_next(), "STATUS=small");
}

// A queue that nobody reads is full after some messages; the sender does not wait for it. The
// messages that did not fit follow in order.
TEST(service_notify, sends_again_what_a_full_queue_did_not_take) {
  const scratch folder;
  const manager systemd(folder / "notify");
  int sent = 0;
  while (service::notify("STATUS=" + std::to_string(sent))) ++sent;
  service::stopping();
  for (int i = 0; i <= sent; ++i) EXPECT_EQ(systemd.heard_next(), "STATUS=" + std::to_string(i));
  EXPECT_EQ(systemd.heard_next(), "STOPPING=1\n");
}

// The manager is restarted: its socket is made anew.
TEST(service_notify, tells_a_manager_that_comes_back) {
  const scratch folder;
  std::optional<manager> systemd(std::in_place, folder / "notify");
  systemd.reset();
  ::setenv("NOTIFY_SOCKET", (folder / "notify").c_str(), 1);
  service::ready();
  ::unlink((folder / "notify").c_str());
  systemd.emplace(folder / "notify");
  EXPECT_EQ(systemd->heard_next(), "READY=1\n");
}

// As docs/guide/operating.md feeds a watchdog: by a repeated call, which workers run.
TEST(service_notify, a_watchdog_hears_nothing_while_all_workers_are_stuck) {
  using namespace std::chrono_literals;
  constexpr std::size_t workers = 2;
  const scratch folder;
  const manager systemd(folder / "notify");
  runtime_options options;
  options.workers = workers;
  runtime rt(options);
  timer fed = rt.every(5ms, [] { service::notify("WATCHDOG=1\n"); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(systemd.heard_next(), "WATCHDOG=1\n");
  std::latch stuck(workers), released(1);
  for (std::size_t i = 0; i < workers; ++i) {
    rt.post([&] {
      stuck.count_down();
      released.wait();
    });
  }
  stuck.wait();
  while (systemd.heard() != "nothing") {
  }
  std::this_thread::sleep_for(50ms);  // sleeps: ten calls would come in this time
  EXPECT_EQ(systemd.heard(), "nothing");
  released.count_down();
  EXPECT_EQ(systemd.heard_next(), "WATCHDOG=1\n");
  fed.cancel();
}

}  // namespace
}  // namespace troupe::test
