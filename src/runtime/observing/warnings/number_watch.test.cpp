#include "runtime/observing/warnings/number_watch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace troupe::observing {
namespace {

using observe::distribution;
using observe::trouble;

constexpr std::array bounds{0.01, 0.1, 1.0, 10.0};

struct thing {
  distribution requests{bounds, std::vector<std::uint64_t>(bounds.size() + 1), 0};
  distribution statements = requests;
  std::uint64_t refused = 0, failed = 0;
  std::size_t waiting = 0;
};
const observe::number_table<thing> thing_numbers{
    "test_number_watch",
    {"method", "route", "statement", "pool", "server"},
    {shows(trouble::slow_requests,
           observe::histogram_of<&thing::requests>("requests_seconds", "R.")),
     shows(trouble::slow_statements,
           observe::histogram_of<&thing::statements>("statements_seconds", "S.")),
     shows(trouble::refused_clients, observe::counter_of<&thing::refused>("refused", "F.")),
     shows(trouble::exporter_unavailable, observe::counter_of<&thing::failed>("failed", "F.")),
     shows(trouble::pool_exhausted, observe::gauge_of<&thing::waiting>("waiting", "W."))}};

// Each look follows a second after the one before.
class watched {
 public:
  // The subjects of the warnings of this look, whose texts are kept.
  std::vector<std::string> look(const thing& now) {
    told_.clear();
    now_ns_ += 1'000'000'000;
    warning_list list(options_);
    watch_.look(now_ns_, list, [&](observe::row_sink& rows) {
      rows.add(thing_numbers, {"GET", "/slow", "SELECT ?", "nests", "127.0.0.1:80"}, now);
    });
    return subjects_;
  }
  void forget() { subjects_.clear(); }
  const std::string& text() const { return told_; }

 private:
  runtime_options make_options() {
    runtime_options options;
    options.on_warning = [this](const warning& found) {
      subjects_.push_back(found.subject);
      told_ = found.text;
    };
    return options;
  }
  std::vector<std::string> subjects_;
  std::string told_;
  const runtime_options options_ = make_options();
  number_watch watch_{options_.warnings};
  std::int64_t now_ns_ = 0;
};

struct trouble_of_numbers {
  const char* name;
  void (*grows)(thing&);
  std::vector<std::string> subjects;
  const char* text;
};
const trouble_of_numbers all_troubles[] = {
    {"nothing", [](thing&) {}, {}, ""},
    {"a fast request", [](thing& of_now) { ++of_now.requests.counts[2]; }, {}, ""},
    {"a slow request",
     [](thing& of_now) { ++of_now.requests.counts[3]; },
     {"GET /slow"},
     "GET /slow took more than 1 s in 1 of 1 runs since the last look, up to 10 s."},
    {"a request above all bounds",
     [](thing& of_now) { ++of_now.requests.counts[4]; },
     {"GET /slow"},
     "GET /slow took more than 1 s in 1 of 1 runs since the last look, up to 10 s."},
    {"few slow requests among many",
     [](thing& of_now) {
       of_now.requests.counts[0] += 1000;
       ++of_now.requests.counts[3];
     },
     {},
     ""},
    {"a slow statement",
     [](thing& of_now) { ++of_now.statements.counts[2]; },
     {"SELECT ?"},
     "SELECT ? took more than 100 ms in 1 of 1 runs since the last look, up to 1 s."},
    {"a refused client",
     [](thing& of_now) { of_now.refused += 3; },
     {"the HTTP server 127.0.0.1:80"},
     "the HTTP server 127.0.0.1:80 has turned away 9 connections so far, 3 of them since the last "
     "look."},
    {"a failed export",
     [](thing& of_now) { ++of_now.failed; },
     {"the exporter of spans"},
     "the exporter of spans reaches no collector: 3 requests failed so far, 1 of them since the "
     "last look."},
    {"callers of a pool",
     [](thing& of_now) { of_now.waiting = 2; },
     {"the pool nests"},
     "the pool nests has no resource left, and 2 callers wait."}};

TEST(number_watch, warns_of_trouble_that_lasts) {
  for (const trouble_of_numbers& each : all_troubles) {
    SCOPED_TRACE(each.name);
    watched seen;
    thing now;
    seen.look(now);
    each.grows(now);
    seen.look(now);
    EXPECT_EQ(seen.look(thing()), std::vector<std::string>()) << "a single event is no warning";
    watched lasting;
    now = thing();
    lasting.look(now);
    for (int i = 0; i < 2; ++i) {
      each.grows(now);
      lasting.look(now);
    }
    lasting.forget();
    each.grows(now);
    EXPECT_EQ(lasting.look(now), each.subjects);
    EXPECT_EQ(lasting.text(), each.text);
  }
}

TEST(number_watch, counts_from_the_first_look_on) {
  watched seen;
  thing now;
  now.refused = 100;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(seen.look(now), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe::observing
