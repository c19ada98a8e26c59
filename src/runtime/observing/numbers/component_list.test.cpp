#include "runtime/observing/numbers/component_list.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "troupe/runtime/runtime.hpp"

namespace troupe::observing {
namespace {

std::string text_of(component_list& all) {
  json_text text;
  text.open('{');
  all.write(text);
  text.close('}');
  return std::move(text).take();
}

component_list::component shop(std::string name, int sold) {
  return {"shops", "shop", std::move(name), {}, [sold](json_text& to) { to.member("sold", sold); }};
}

TEST(component_list, shows_what_is_in_it) {
  const auto all = std::make_shared<component_list>();
  EXPECT_EQ(text_of(*all), "{}");
  std::optional<component_list::entry> first = all->add(shop("a", 1));
  {
    const component_list::entry second = all->add(shop("b", 2));
    const component_list::entry other = all->add({"banks", "bank", "a"});
    EXPECT_EQ(text_of(*all),
              R"({"banks":[{"bank":"a"}],"shops":[{"shop":"a","sold":1},{"shop":"b","sold":2}]})");
  }
  EXPECT_EQ(text_of(*all), R"({"shops":[{"shop":"a","sold":1}]})");
  first.reset();
  EXPECT_EQ(text_of(*all), "{}");
}

TEST(component_list, tells_those_of_one_name_apart) {
  const auto all = std::make_shared<component_list>();
  component_list::entry first = all->add(shop("a", 1));
  const component_list::entry second = all->add(shop("a", 2));
  EXPECT_EQ(text_of(*all), R"all({"shops":[{"shop":"a","sold":1},{"shop":"a (2)","sold":2}]})all");
  first = component_list::entry();
  first = all->add(shop("a", 3));
  EXPECT_EQ(text_of(*all), R"all({"shops":[{"shop":"a (2)","sold":2},{"shop":"a","sold":3}]})all");
}

TEST(component_list, may_outlive_the_runtime) {
  component_list::entry first;
  {
    runtime rt;
    first = components_of(rt)->add(shop("a", 1));
  }
}

}  // namespace
}  // namespace troupe::observing
