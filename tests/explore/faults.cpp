// Faults of the simulated network and of files: a search finds each kind, reduces it to that fault,
// and repeats it; without it the program passes.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "sched/exploring/schedule_file.hpp"
#include "support/scratch.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;

// Adds one for each byte that comes, and sends it back.
troupe::task<> serve(troupe::tcp_stream peer, std::shared_ptr<int> added) {
  std::array<char, 1> byte{};
  try {
    while (co_await peer.read(byte).timeout(60s) != 0) {
      ++*added;
      co_await peer.write_all(std::string_view(byte.data(), 1));
    }
  } catch (const troupe::io_error&) {  // the client may come again
  } catch (const troupe::timed_out&) {
  }
}

troupe::task<> serve_all(troupe::runtime& rt, troupe::tcp_listener listener,
                         std::shared_ptr<int> added) {
  for (;;) {
    troupe::tcp_stream peer = co_await listener.accept();
    rt.spawn(serve(std::move(peer), added));
  }
}

enum class outcome { done, cut, late };

// One request and its answer, by a connection of its own.
troupe::task<outcome> request(troupe::endpoint server, std::chrono::seconds limit) {
  std::array<char, 1> answer{};
  try {
    troupe::tcp_stream peer = co_await troupe::tcp_stream::connect(server);
    co_await peer.write_all("a");
    if (limit == 0s) {
      co_await peer.read_exact(answer);
    } else {
      co_await peer.read_exact(answer).timeout(limit);
    }
  } catch (const troupe::io_error&) {
    co_return outcome::cut;
  } catch (const troupe::end_of_stream&) {
    co_return outcome::cut;
  } catch (const troupe::timed_out&) {
    co_return outcome::late;
  }
  co_return outcome::done;
}

using counter = std::shared_ptr<int>;

// Sends its request again when the connection was cut, though the server may have handled it.
troupe::task<> repeat_after_cut(troupe::endpoint server, counter) {
  for (int i = 0; i < 2; ++i) {
    const outcome ended = co_await request(server, 1s);
    if (ended != outcome::cut) co_return;
  }
}

// Waits without a limit.
troupe::task<> wait_without_limit(troupe::endpoint server, counter) {
  co_await request(server, 0s);
}

// Takes the late answer of its first request for the answer of its second one.
troupe::task<> take_any_answer(troupe::endpoint server, counter) {
  std::array<char, 1> answer{};
  try {
    troupe::tcp_stream peer = co_await troupe::tcp_stream::connect(server);
    for (const std::string_view asked : {"a", "b"}) {
      co_await peer.write_all(asked);
      try {
        co_await peer.read_exact(answer).timeout(6s);
      } catch (const troupe::timed_out&) {
        continue;
      }
      troupe::expect(answer.front() == asked.front());
    }
  } catch (const troupe::io_error&) {  // as a cut connection should be
  } catch (const troupe::end_of_stream&) {
  }
}

// Looks whether its request was handled before it repeats it: it is right.
troupe::task<> repeat_if_missing(troupe::endpoint server, counter added) {
  for (int i = 0; i < 3 && *added == 0; ++i) {
    co_await request(server, 20s);
    co_await troupe::sleep_for(20s);
  }
}

using client = troupe::task<> (*)(troupe::endpoint, counter);

troupe::task<> open_and_ask(troupe::runtime& rt, counter added, client ask) {
  troupe::tcp_listener listener =
      troupe::tcp_listener::listen(troupe::endpoint::loopback(0), {.weak = true});
  const troupe::endpoint at = listener.local();
  rt.spawn(serve_all(rt, std::move(listener), added));
  co_await ask(at, added);
}

template <client Ask, int Most, int Minutes = 60>
void with_server(const std::string&) {
  troupe::runtime rt;
  auto added = std::make_shared<int>(0);
  rt.spawn(open_and_ask(rt, added, Ask));
  rt.run();
  troupe::expect(*added <= Most && rt.now() < std::chrono::minutes(Minutes));
}

// Believes that a line is in the file although its write failed.
troupe::task<> write_lines(std::string path, counter written) {
  troupe::open_options anew;
  anew.write = anew.create = anew.truncate = true;
  troupe::file lines = co_await troupe::file::open(path, anew);
  for (int i = 0; i < 3; ++i) {
    try {
      co_await lines.write_all("line\n");
    } catch (const troupe::io_error&) {  // and counts it
    }
    ++*written;
  }
  co_await lines.close();
}

void ignore_a_failed_write(const std::string& path) {
  troupe::runtime rt;
  auto written = std::make_shared<int>(0);
  rt.spawn(write_lines(path, written));
  rt.run();
  troupe::expect(std::filesystem::file_size(path) == static_cast<std::size_t>(*written) * 5);
}

// Has a limit that a slow disk exceeds.
troupe::task<> write_in_time(std::string path) {
  troupe::open_options anew;
  anew.write = anew.create = anew.truncate = true;
  troupe::file lines = co_await troupe::file::open(path, anew);
  try {
    co_await lines.write_all("line\n").timeout(5s);
  } catch (const troupe::io_error&) {
    co_return;
  }
  co_await lines.close();
}

void expect_a_fast_disk(const std::string& path) {
  troupe::runtime rt;
  rt.spawn(write_in_time(path));
  rt.run();
}

struct planted {
  const char* name;
  void (*body)(const std::string& file);
  const char* fault;  // in the schedule
  const char* says;
  const char* told;  // in the story
};
void PrintTo(const planted& of, std::ostream* to) { *to << of.name; }

const planted all[] = {
    {"of_a_cut_connection", &with_server<repeat_after_cut, 1>, "fault cut ", "expect",
     "a connection was cut at its send "},
    {"of_a_lost_connection", &with_server<wait_without_limit, 1, 10>, "fault lost ", "expect",
     "nothing arrived by a connection any more from its send "},
    {"of_a_slow_connection", &with_server<take_any_answer, 2>, "fault slow ", "expect",
     "of a connection arrived 10 s later"},
    {"of_a_failing_write", &ignore_a_failed_write, "fault write-fails ", "expect",
     "of files failed"},
    {"of_a_slow_file", &expect_a_fast_disk, "fault slow-file ", "in time",
     "of files began 10 s later"},
};

class faults : public testing::TestWithParam<planted> {
 protected:
  troupe::test::scratch folder_;
  const std::string file_ = folder_ / "lines";
  const std::function<void(troupe::explored_run&)> body_ = [this](troupe::explored_run&) {
    GetParam().body(file_);
  };
};

TEST_P(faults, are_found_reduced_and_repeated) {
  const troupe::explore_report report = troupe::explore(body_, {.faults = true});
  ASSERT_FALSE(report) << report;
  EXPECT_NE(report.failure.find(GetParam().says), std::string::npos) << report;
  EXPECT_TRUE(report.reduced) << report;
  EXPECT_NE(report.schedule.find(GetParam().fault), std::string::npos) << report;
  EXPECT_NE(report.story.find("  fault in turn "), std::string::npos) << report;
  EXPECT_NE(report.story.find(GetParam().told), std::string::npos) << report;
  EXPECT_NE(report.diagram.find(GetParam().told), std::string::npos) << report;
  EXPECT_LE(report.holds, 3u) << report;
  EXPECT_LE(report.shrinking_runs, 50u);
  for (int i = 0; i < 100; ++i) {
    const troupe::explore_report again = troupe::replay(body_, report.schedule);
    ASSERT_EQ(again.failure, report.failure);
    EXPECT_EQ(again.unmet, "");
  }
  auto without = troupe::sched::exploring::parse_schedule(report.schedule, "the report");
  without.plan.holds.clear();
  EXPECT_EQ(troupe::replay(body_, text_of(without)).failure, "");
}

TEST_P(faults, do_not_happen_unless_they_are_asked_for) {
  const troupe::explore_report report = troupe::explore(body_, {.schedules = 60});
  EXPECT_TRUE(report) << report;
}

INSTANTIATE_TEST_SUITE_P(each, faults, testing::ValuesIn(all),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(faults_of_a_search, find_nothing_in_a_client_that_is_ready_for_them) {
  const troupe::explore_report report = troupe::explore(
      [](auto&) { with_server<repeat_if_missing, 1>(""); }, {.schedules = 200, .faults = true});
  EXPECT_TRUE(report) << report;
  EXPECT_EQ(report.schedules, 200u);
}

}  // namespace
