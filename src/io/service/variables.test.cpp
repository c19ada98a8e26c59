#include "io/service/variables.hpp"

#include <gtest/gtest.h>

#include "troupe/base/error.hpp"

namespace troupe::service {
namespace {

constexpr pid_t own = 100, parent = 50;

// The names, each with '|' before it; "none" if nothing is passed.
std::string names_in(const variables& given) {
  const std::optional<passed> got = read_variables(given, own, parent);
  if (!got) return "none";
  std::string all;
  for (const std::string& name : got->names) all += "|" + name;
  return all;
}

TEST(service_variables, of_systemd_name_the_sockets) {
  EXPECT_EQ(names_in({"2", "100", "web:admin", nullptr}), "|web|admin");
  EXPECT_EQ(names_in({"2", "100", nullptr, nullptr}), "||");
  EXPECT_EQ(names_in({"3", "100", "web", nullptr}), "|web||");
  EXPECT_EQ(names_in({"1", "100", "web:admin", nullptr}), "|web");
  EXPECT_EQ(names_in({"0", "100", "", nullptr}), "");
}

TEST(service_variables, that_are_not_for_this_process_give_nothing) {
  EXPECT_EQ(names_in({}), "none");
  EXPECT_EQ(names_in({nullptr, "100", "web", nullptr}), "none");
  EXPECT_EQ(names_in({"1", "101", "web", nullptr}), "none");
  EXPECT_EQ(names_in({"1", nullptr, "web", nullptr}), "none");
  EXPECT_EQ(names_in({"1", nullptr, "web", "51 4 0"}), "none");
}

TEST(service_variables, that_are_malformed_are_refused) {
  for (const char* count : {"", "x", "-1", "1x", " 1", "65537", "99999999999"})
    EXPECT_THROW(names_in({count, "100", nullptr, nullptr}), option_error) << count;
  EXPECT_NO_THROW(names_in({"65536", "100", nullptr, nullptr}));
  for (const char* pid : {"", "x", "100x", "-100"})
    EXPECT_THROW(names_in({"1", pid, nullptr, nullptr}), option_error) << pid;
  for (const char* from : {"", "50", "50 x 0", "x 4 0", "50 4 2", "50 4 00", "50 4", "50 4 0 0"})
    EXPECT_THROW(names_in({"1", nullptr, "web", from}), option_error) << from;
}

TEST(service_variables, of_a_predecessor_say_whose_the_files_are) {
  const std::string said = predecessor{parent, 5, "01"}.to_string();
  EXPECT_EQ(said, "50 5 01");
  const auto got = read_variables({"2", nullptr, "web:local", said.c_str()}, own, parent);
  ASSERT_TRUE(got && got->from);
  EXPECT_EQ(got->names, (std::vector<std::string>{"web", "local"}));
  EXPECT_EQ(got->from->ready_fd, 5);
  EXPECT_EQ(got->from->files, "01");
  EXPECT_EQ(names_in({"0", nullptr, "", "50 3 "}), "");
}

}  // namespace
}  // namespace troupe::service
