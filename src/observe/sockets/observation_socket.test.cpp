#include "observe/sockets/observation_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::observe {
namespace {

class observation_folder : public testing::Test {
 protected:
  observation_folder() {
    std::string name = testing::TempDir() + "troupe_folder_XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~observation_folder() override { std::filesystem::remove_all(folder); }
  std::string fault_of(const std::string& path, ::uid_t user = own_user()) {
    const auto found = check_folder(path, user);
    return found ? found->problem : "none";
  }
  std::string folder;
};

TEST_F(observation_folder, belongs_to_one_user_alone) {
  EXPECT_EQ(fault_of(folder), "none");
  EXPECT_EQ(fault_of(folder + "/missing"), folder + "/missing");
  EXPECT_EQ(fault_of(folder, own_user() + 1), folder + " belongs to user " +
                                                  std::to_string(own_user()) + ", not to " +
                                                  std::to_string(own_user() + 1));
  ::chmod(folder.c_str(), 0710);
  EXPECT_EQ(fault_of(folder), folder + " is open to other users");
  ::chmod(folder.c_str(), 0700);
  const std::string file = folder + "/file", link = folder + "/link";
  std::ofstream(file) << "x";
  EXPECT_EQ(fault_of(file), file + " is no folder");
  std::filesystem::create_directory_symlink(folder, link);
  EXPECT_EQ(fault_of(link), link + " is no folder");
}

TEST(observation_socket, lies_in_the_runtime_folder_or_in_tmp) {
  EXPECT_EQ(socket_folder("/run/user/7", 7), "/run/user/7/troupe");
  EXPECT_EQ(socket_folder("", 7), "/tmp/troupe-7");
  EXPECT_EQ(socket_folder(nullptr, 7), "/tmp/troupe-7");
}

TEST(observation_socket, has_an_address_of_at_most_107_bytes) {
  ::sockaddr_un address;
  EXPECT_FALSE(make_address(std::string(107, 'x'), address));
  EXPECT_EQ(std::string(address.sun_path), std::string(107, 'x'));
  EXPECT_TRUE(make_address(std::string(108, 'x'), address));
}

TEST(observation_socket, knows_who_is_at_its_other_end) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_TRUE(is_other_end_of(ends[0], own_user(), false));
  EXPECT_EQ(is_other_end_of(ends[0], own_user() + 1, true), own_user() == 0);
  EXPECT_FALSE(is_other_end_of(ends[0], own_user() + 1, false));
  EXPECT_FALSE(is_other_end_of(-1, own_user(), true));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace troupe::observe
