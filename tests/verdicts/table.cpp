#include "verdicts/table.hpp"

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <typeinfo>

namespace troupe::test {
namespace {

std::string type_of(const error& one) {
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(one).name(), nullptr, nullptr, nullptr), &std::free);
  return name == nullptr ? "" : name.get();
}

// Of wrong rows.
std::string text_of(const verdict& one) {
  constexpr const char* parties[] = {"caller", "peer", "upstream", "us"};
  constexpr const char* effects[] = {"none", "done", "unknown"};
  constexpr const char* agains[] = {"never", "later", "now"};
  return std::string(parties[static_cast<std::size_t>(one.fault)]) + ", " +
         effects[static_cast<std::size_t>(one.ran)] + ", " +
         agains[static_cast<std::size_t>(one.retry)];
}

}  // namespace

void expect_verdicts(std::initializer_list<verdict_row> rows) {
  for (const verdict_row& row : rows) {
    const std::string where = std::string(row.type) + " " + row.kind;
    EXPECT_EQ(type_of(*row.made), "troupe::" + std::string(row.type)) << where;
    const verdict said = row.made->judged();
    EXPECT_EQ(text_of(said), text_of(row.expected)) << where;
    const std::optional<std::chrono::nanoseconds> wait = row.made->try_again_in();
    EXPECT_EQ(wait.has_value(), said.retry != never) << where;
    const std::chrono::nanoseconds given = wait.value_or(std::chrono::nanoseconds(0));
    EXPECT_EQ(given.count() > 0, said.retry == later) << where;
  }
}

}  // namespace troupe::test
