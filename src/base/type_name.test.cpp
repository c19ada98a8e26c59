#include "troupe/base/type_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bank {

struct Account {
  void deposit(int) {}
  int read() const noexcept { return 0; }
  template <class T>
  void convert(T) {}
};
template <class T, class U>
struct Pair {};

}  // namespace bank

namespace troupe::base {
namespace {

TEST(type_name, a_class_with_its_namespace) {
  EXPECT_STREQ(type_name<bank::Account>(), "bank::Account");
  EXPECT_STREQ(type_name<int>(), "int");
}

TEST(type_name, a_class_template_with_its_arguments) {
  const std::string name = type_name<bank::Pair<int, bank::Account>>();
  EXPECT_EQ(name, "bank::Pair<int, bank::Account>");
}

TEST(type_name, a_lambda_and_a_local_class_have_some_name) {
  struct local {};
  EXPECT_NE(std::string(type_name<local>()).find("local"), std::string::npos);
  const auto lambda = [] {};
  EXPECT_NE(std::string(type_name<decltype(lambda)>()).find("lambda"), std::string::npos);
}

TEST(type_name, a_method_with_its_class) {
  EXPECT_NE(std::string(value_name<&bank::Account::deposit>()).find("bank::Account::deposit"),
            std::string::npos);
  EXPECT_NE(std::string(value_name<&bank::Account::read>()).find("bank::Account::read"),
            std::string::npos);
  EXPECT_NE(std::string(value_name<&bank::Account::convert<int>>()).find("bank::Account::convert"),
            std::string::npos);
}

TEST(type_name, names_end_where_the_compiler_ends_them) {
  const std::string name = value_name<&bank::Account::deposit>();
  EXPECT_EQ(name.find(']'), std::string::npos) << name;
  EXPECT_EQ(name.find(';'), std::string::npos) << name;
}

}  // namespace
}  // namespace troupe::base
