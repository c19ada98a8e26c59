// Files that released versions have written are read by this one. `fixtures/0.1.db` was written by
// version 0.1 with TROUPE_WRITE_FIXTURE=FILE in the environment of this test; a new version adds
// one, and changes none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/scratch.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {
namespace {

using durable::store;

// These types are those of the files: they never change.
struct Line {
  std::string what;
  std::int64_t cents = 0;
  bool operator==(const Line&) const = default;
};
struct Customer {
  std::string name;
  std::vector<Line> lines;
  std::map<std::string, std::optional<int>> marks;
  std::variant<std::monostate, std::int64_t, std::string> either;
  std::chrono::milliseconds waits{0};
  bool operator==(const Customer&) const = default;

  void set(Customer to) { *this = std::move(to); }
  std::int64_t add(std::int64_t cents) {
    lines.push_back({"added", cents});
    return static_cast<std::int64_t>(lines.size());
  }
  Customer all() const { return *this; }
  void refuse() { throw std::runtime_error("poison"); }
  void remind(durable::turn& turn) {
    turn.remind_at<&Customer::add>("later", std::chrono::system_clock::time_point(), 7);
  }
};
// The message stays in the inbox of the file.
struct Waiting {
  int handled = 0;
  static inline bool ends = false;
  task<> handle() {
    if (!ends) co_await sleep_for(std::chrono::hours(1));
    ++handled;
  }
  int count() const { return handled; }
};
struct Counter {
  using event = int;
  static constexpr std::uint64_t events_between_snapshots = 4;
  std::int64_t sum = 0;
  void apply(const int& by) { sum += by; }
  durable::changes<int> add(int by) const { return {{by}}; }
  std::int64_t value() const { return sum; }
};

Customer example() {
  return {"Ada",
          {{"pen", 120}, {"ink", 99}},
          {{"a", 1}, {"b", std::nullopt}},
          std::string("text"),
          std::chrono::milliseconds(1500)};
}

task<store> open(runtime& rt, const std::string& path) {
  durable::options chosen;
  chosen.failures_max = 1;
  chosen.remember =
      std::chrono::hours(24 * 365 * 100);  // the file has ids of the day when it was made
  return store::open(rt, durable::sqlite_storage(rt, path), chosen,
                     durable::kind<Customer, &Customer::set, &Customer::add, &Customer::all,
                                   &Customer::refuse, &Customer::remind>(),
                     durable::kind<Waiting, &Waiting::handle, &Waiting::count>(),
                     durable::kind<Counter, &Counter::add, &Counter::value>());
}

task<> write(runtime& rt, std::string path) {
  auto opens = open(rt, path);
  const store kept = co_await std::move(opens);
  const auto customer = kept.get<Customer>("ada");
  co_await customer.ask<&Customer::set>(example());
  auto named = customer.with_id(durable::message_id::of("order 17"));
  co_await named.ask<&Customer::add>(5);
  co_await customer.post<&Customer::refuse>();
  for (int i = 1; i <= 6; ++i) co_await kept.get<Counter>("c").ask<&Counter::add>(i);
  co_await kept.get<Waiting>("w").post<&Waiting::handle>();
  std::_Exit(0);
}

task<> read(runtime& rt, std::string path) {
  Waiting::ends = true;
  auto opens = open(rt, path);
  const store kept = co_await std::move(opens);
  const auto customer = kept.get<Customer>("ada");
  Customer wanted = example();
  wanted.lines.push_back({"added", 5});
  const Customer found = co_await customer.ask<&Customer::all>();
  EXPECT_EQ(found, wanted);
  auto named = customer.with_id(durable::message_id::of("order 17"));
  EXPECT_EQ(co_await named.ask<&Customer::add>(5), 3);
  EXPECT_EQ(co_await kept.get<Counter>("c").ask<&Counter::value>(), 21);
  EXPECT_EQ(co_await kept.get<Waiting>("w").ask<&Waiting::count>(), 1);
  co_await customer.ask<&Customer::remind>();
}

TEST(durable_fixtures, files_of_each_version_are_read) {
  if (const char* const target = std::getenv("TROUPE_WRITE_FIXTURE")) {
    runtime rt;
    rt.spawn(write(rt, target));
    rt.run();
  }
  const auto folder = source_folder() / "tests" / "durable" / "fixtures";
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".db") continue;
    const scratch copies;
    const std::string copy = copies / "copy.db";
    std::filesystem::copy_file(file.path(), copy);
    SCOPED_TRACE(file.path());
    runtime rt;
    future<> done = rt.spawn(read(rt, copy));
    rt.run();
    done.get();
    ++files;
  }
  EXPECT_GE(files, 1);
}

}  // namespace
}  // namespace troupe::test
