// What a service tells its manager.
#include "troupe/io/service/notify.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "support/scratch.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"

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
  std::string heard() const {
    std::array<char, 1000> text{};
    const ssize_t bytes = ::recv(fd_, text.data(), text.size(), 0);
    return bytes < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(bytes));
  }

 private:
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

TEST(service_notify, says_that_the_manager_cannot_be_told) {
  ::setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
  EXPECT_THROW(service::notify("READY=1"), io_error);
  ::setenv("NOTIFY_SOCKET", "vsock:1:2", 1);
  EXPECT_THROW(service::notify("READY=1"), option_error);
  ::setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_THROW(service::notify("READY=1"), option_error);
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace troupe::test
