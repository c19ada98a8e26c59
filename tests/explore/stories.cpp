// The story of a failure names the source lines of its messages, its waits and its holds, as a text
// and as a diagram. This file is compiled with debugging information.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string>
#include <utility>

#include "runtime/exploring/story_diagram.hpp"
#include "sched/exploring/story_event.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;

// The line after the call, as a story shows it.
std::string next_line(std::source_location at = std::source_location::current()) {
  return "stories.cpp:" + std::to_string(at.line() + 1);
}

std::string use_line, pass_line, lend_line, send_line;

struct Valve {
  bool opened = false;
  void open() { opened = true; }
  void use() { troupe::expect(opened); }
};
struct Hand {
  troupe::ref<Valve> valve;
  void open() { valve.tell<&Valve::open>(); }
  void use() {
    use_line = next_line();
    valve.tell<&Valve::use>();
  }
};

void use_too_early(troupe::explored_run&) {
  troupe::runtime rt;
  auto valve = rt.spawn<Valve>();
  auto left = rt.spawn<Hand>(valve), right = rt.spawn<Hand>(valve);
  left.tell<&Hand::open>();
  pass_line = next_line();
  right.tell<&Hand::use>();
  rt.run();
}

struct Lender {
  int lent = 0;
  int lend() { return ++lent; }
};
struct Borrower {
  troupe::ref<Lender> lender;
  troupe::task<> borrow() {
    lend_line = next_line();
    const int had = co_await lender.ask<&Lender::lend>();
    troupe::expect(had == 0);
  }
};

void borrow(troupe::explored_run&) {
  troupe::runtime rt;
  rt.spawn<Borrower>(rt.spawn<Lender>()).tell<&Borrower::borrow>();
  rt.run();
}

struct Sleeper {
  troupe::task<> sleep() {
    co_await troupe::sleep_for(1s);
    troupe::expect(false);
  }
};

void oversleep(troupe::explored_run&) {
  troupe::runtime rt;
  rt.spawn<Sleeper>().tell<&Sleeper::sleep>();
  rt.run();
}

struct Peer {
  troupe::ref<Peer> other;
  void know(troupe::ref<Peer> met) { other = std::move(met); }
  int value() { return 1; }
  troupe::task<> begin() { static_cast<void>(co_await other.ask<&Peer::value>()); }
};

void ask_in_a_cycle(troupe::explored_run&) {
  troupe::runtime rt;
  auto left = rt.spawn<Peer>(), right = rt.spawn<Peer>();
  left.tell<&Peer::know>(right);
  right.tell<&Peer::know>(left);
  left.tell<&Peer::begin>();
  right.tell<&Peer::begin>();
  rt.run();
}

// Expects that no connection is ever lost.
struct Client {
  troupe::task<> talk(troupe::endpoint server) {
    troupe::tcp_stream peer = co_await troupe::tcp_stream::connect(server);
    auto sends = peer.write_all("hello");
    send_line = next_line();
    co_await std::move(sends);
    peer.shutdown_write();
  }
};

troupe::task<> hear(troupe::tcp_listener listener) {
  troupe::tcp_stream peer = co_await listener.accept();
  std::array<char, 8> bytes{};
  for (std::size_t got = 1; got != 0;) got = co_await peer.read(bytes);
}

troupe::task<> listen(troupe::runtime& rt) {
  troupe::tcp_listener listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const troupe::endpoint at = listener.local();
  rt.spawn(hear(std::move(listener)));
  rt.spawn<Client>().tell<&Client::talk>(at);
  co_return;
}

void talk(troupe::explored_run&) {
  troupe::runtime rt;
  rt.spawn(listen(rt));
  rt.run();
}

void expect_parts(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST(stories, name_the_line_that_sent_each_message) {
  const troupe::explore_report report = troupe::explore(use_too_early);
  ASSERT_FALSE(report);
  expect_parts(report.story, {"sent by Hand #", "at ", use_line, pass_line});
}

TEST(stories, say_when_a_held_message_runs_otherwise) {
  const troupe::explore_report report = troupe::explore(use_too_early);
  ASSERT_FALSE(report);
  expect_parts(report.story, {"held, and runs otherwise in turn "});
}

TEST(stories, follow_an_answer_back_to_the_handler_that_gave_it) {
  const troupe::explore_report report = troupe::explore(borrow);
  ASSERT_FALSE(report);
  expect_parts(report.story, {"Lender::lend of Lender #", lend_line, "continued by Lender #"});
}

TEST(stories, name_the_timer_that_ended_a_wait) {
  const troupe::explore_report report = troupe::explore(oversleep);
  ASSERT_FALSE(report);
  expect_parts(report.story, {"continued by a timer"});
}

TEST(stories, name_the_turn_and_the_line_of_a_fault) {
  const troupe::explore_report report = troupe::explore(talk, {.faults = true});
  ASSERT_FALSE(report);
  expect_parts(report.story, {"  fault in turn ", ", in Client::talk of Client #",
                              send_line + ": a connection was cut at its send 1"});
  expect_parts(report.diagram, {"fault in turn ", "a connection was cut at its send 1"});
}

TEST(stories, of_waits_without_end_tell_each_of_them) {
  const troupe::explore_report report = troupe::explore(ask_in_a_cycle);
  ASSERT_FALSE(report);
  std::size_t waits = 0;
  for (std::size_t at = 0; (at = report.story.find("it waits for", at)) != std::string::npos; ++at)
    ++waits;
  EXPECT_EQ(waits, 2u) << report.story;
  expect_parts(report.story, {"Peer::begin of Peer #"});
}

TEST(stories, are_drawn_with_an_arrow_for_each_message) {
  const troupe::explore_report report = troupe::explore(use_too_early);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.diagram.rfind("<?xml", 0), 0u);
  expect_parts(report.diagram, {"marker-end", ">the program</text>", ">Valve #", ">use</text>",
                                use_line, pass_line, "stroke-dasharray", "not handled", "fails"});
  for (const char letter : report.diagram)
    ASSERT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
}

// A name that is hostile to the picture, and to a terminal.
TEST(stories, are_drawn_in_plain_characters) {
  const std::string hostile = "</svg>&\"\x1b[2J\xff";
  const troupe::told_story told{
      .actors = {hostile},
      .messages = {{.method = hostile, .receiver = 0, .turn = 1, .place = hostile, .fails = true}},
      .left_out = 3};
  const std::string drawn = troupe::svg_diagram(told, hostile);
  EXPECT_EQ(drawn.find("</svg>"), drawn.size() - 7);
  EXPECT_EQ(drawn.find('\x1b'), std::string::npos);
  const std::string text = troupe::ascii_diagram(told, hostile);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  expect_parts(text, {"3 earlier handlers", "turn 1", "X"});
}

TEST(story_events, are_read_as_they_are_written) {
  using namespace troupe::sched::exploring;
  const story_event all[] = {
      {.kind = story_kind::module, .text = "/a folder/program"},
      {.kind = story_kind::spawned, .actor = 7, .text = "Stock"},
      {.kind = story_kind::sent,
       .actor = 7,
       .text = "a method",
       .callers = {{0, 17}, {1, UINT64_MAX}}},
      {.kind = story_kind::begun,
       .actor = 7,
       .text = "m",
       .turn = 3,
       .id = {UINT64_MAX, 5, 6},
       .ready_after = 2},
      {.kind = story_kind::ended, .actor = UINT64_MAX},
      {.kind = story_kind::waits, .actor = 7, .text = "the answer of m", .place = "a file.cpp:12"},
      {.kind = story_kind::outside, .text = "a timer"},
      {.kind = story_kind::fault,
       .text = "write 2 of files failed",
       .callers = {{0, 17}},
       .turn = 9},
      {.kind = story_kind::broken}};
  for (const story_event& event : all) {
    story_event again;
    ASSERT_TRUE(read_event(line_of(event), again)) << line_of(event);
    EXPECT_EQ(line_of(again), line_of(event));
    EXPECT_EQ(again.text, event.text);
    EXPECT_EQ(again.place, event.place);
    EXPECT_EQ(again.callers, event.callers);
    EXPECT_EQ(again.id, event.id);
    EXPECT_EQ(again.turn, event.turn);
  }
  for (const char* const line :
       {"", "turn 1", "story", "story dances 1 x", "story sent 1 99999 0:1 m",
        "story sent 1 2 0:1 m", "story begun 1 2 x"}) {
    story_event event;
    EXPECT_FALSE(read_event(line, event)) << line;
  }
}

TEST(stories, are_the_same_in_each_replay) {
  const troupe::explore_report report = troupe::explore(use_too_early);
  ASSERT_FALSE(report);
  EXPECT_EQ(troupe::replay(use_too_early, report.schedule).story, report.story);
}

}  // namespace
