#include "sched/policies/choices.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace troupe::sched {
namespace {

TEST(runnable_names, follow_from_the_maker_and_the_number_among_its_children) {
  runnable_names names, again;
  std::array<runnable, 4> made, other;
  for (auto* const each : {&made, &other}) {
    runnable_names& given_names = each == &made ? names : again;
    given_names.name_if_new((*each)[0], false);
    given_names.begin_turn((*each)[0]);
    given_names.name_if_new((*each)[1], true);
    given_names.name_if_new((*each)[2], true);
    given_names.end_turn();
    given_names.name_if_new((*each)[3], false);
  }
  std::set<choice_name> different{program_name};
  for (std::size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(names.of(made[i]), again.of(other[i]));
    EXPECT_TRUE(different.insert(names.of(made[i])).second);
  }
  EXPECT_EQ(names.of(made[2]), child_name(names.of(made[0]), 2));
}

TEST(runnable_names, are_kept_by_a_runnable_and_not_by_its_address) {
  runnable_names names;
  runnable named;
  names.name_if_new(named, false);
  const choice_name before = names.of(named);
  names.name_if_new(named, false);
  EXPECT_EQ(names.of(named), before);
  const auto known = names.forget(named);
  names.restore(named, known);
  EXPECT_EQ(names.of(named), before);
  names.forget(named);
  EXPECT_EQ(names.of(named), program_name);
  names.name_if_new(named, false);
  EXPECT_NE(names.of(named), before);
}

TEST(runnable_names, of_what_is_no_runnable_count_with_those_of_runnables) {
  runnable_names names;
  runnable named;
  names.name_if_new(named, false);
  names.begin_turn(named);
  const choice_name socket = names.new_child(true).name;
  EXPECT_EQ(socket, child_name(names.of(named), 1));
  EXPECT_EQ(names.new_child(false).name, child_name(program_name, 2));
}

TEST(seeded_source, draws_nothing_from_one_stream_for_another) {
  const auto draw = [](bool asks_for_values) {
    seeded_source source(7);
    std::array<std::uint64_t, 8> drawn{};
    for (std::uint64_t& each : drawn) {
      if (asks_for_values) source.decide({.kind = choice_kind::value, .bound = UINT64_MAX});
      each = source.decide({.kind = choice_kind::next, .bound = 1000});
    }
    return drawn;
  };
  EXPECT_EQ(draw(false), draw(true));
}

TEST(seeded_source, answers_below_the_bound) {
  seeded_source source(3);
  connection_choices connection{{.name = 5}, {}};
  source.begin(connection);
  for (int kind = 0; kind <= static_cast<int>(choice_kind::outcome); ++kind) {
    for (const std::uint64_t bound : {1u, 2u, 3u, 100u, 128u}) {
      for (int i = 0; i < 50; ++i) {
        EXPECT_LT(source.decide({static_cast<choice_kind>(kind), bound, 0, &connection, nullptr}),
                  bound);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::sched
