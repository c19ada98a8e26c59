// Stores that an earlier version of the library has written are opened, and go on. `stored/` has
// them, with the program that wrote each.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "durable/stored/before_exact.hpp"
#include "durable/stored/before_full.hpp"
#include "durable/stored/check.hpp"
#include "support/scratch.hpp"
#include "troupe/durable/sqlite_storage.hpp"

namespace troupe::test {
namespace {

TEST(durable_stored, a_sqlite_file_from_before_identities_goes_on) {
  const scratch folder;
  const std::string copy = folder / "copy.db";
  std::filesystem::copy_file(
      source_folder() / "tests" / "durable" / "stored" / "before_identity.db", copy);
  check_kept_store([copy](runtime& rt) { return durable::sqlite_storage(rt, copy); });
}

template <class Bill>
void open_bills(const std::string& file, int shown) {
  run_task([&](runtime& rt) -> task<> {
    auto opens = unclear::open<Bill>(rt, durable::sqlite_storage(rt, file));
    const durable::store store = co_await std::move(opens);
    if (shown == 0) co_return;
    EXPECT_EQ(co_await store.get<Bill>("b").template ask<&Bill::look>(), shown);
  });
}

// The version that wrote it did not tell these types apart: the first program to open it marks it.
TEST(durable_stored, a_sqlite_file_from_before_exact_shapes_is_marked_once) {
  using namespace unclear;
  const scratch folder;
  const std::string file = folder / "copy.db";
  std::filesystem::copy_file(source_folder() / "tests" / "durable" / "stored" / "before_exact.db",
                             file);
  open_bills<bill>(file, 1'500);
  open_bills<bill>(file, 1'500);
  EXPECT_THROW((open_bills<bill_of<status, bank::paid, card::paid>>(file, 0)),
               durable::schema_error);
  EXPECT_THROW((open_bills<bill_of<status_moved, card::paid, bank::paid>>(file, 0)),
               durable::schema_error);
  open_bills<bill>(file, 1'500);
}

// The classes of that store as they may be when enumerators were added.
namespace later {
namespace card::v2 {
enum class step : std::uint8_t { begun, done };
struct paid {
  step at;
  std::int8_t tries;
};
}  // namespace card::v2
namespace bank::v2 {
enum class step : std::uint8_t { begun, done, failed };
struct paid {
  step at;
  std::int8_t tries;
};
}  // namespace bank::v2
enum class door : std::uint8_t { open, shut, locked };
struct set {
  std::int32_t by;
};
}  // namespace later

struct grown_store {
  const scratch folder;
  const std::string file = folder / "copy.db";

  grown_store() {
    std::filesystem::copy_file(source_folder() / "tests" / "durable" / "stored" / "before_full.db",
                               file);
  }
  template <class House, class Sum>
  bool opens() const {
    try {
      run_task([&](runtime& rt) -> task<> {
        auto opens = grown::open<House, Sum>(rt, durable::sqlite_storage(rt, file));
        const durable::store store = co_await std::move(opens);
        EXPECT_EQ(co_await store.get<House>("h").template ask<&House::look>(), 11);
        EXPECT_EQ(co_await store.get<Sum>("s").template ask<&Sum::value>(), 42);
      });
      return true;
    } catch (const durable::schema_error&) {
      return false;
    }
  }
};
using grown_door =
    grown::house_of<grown::card::paid, grown::bank::paid, later::door, grown::window>;
using swapped_doors =
    grown::house_of<grown::card::paid, grown::bank::paid, grown::window, grown::door>;

// Names were added when texts were equal, and are not when one of them has grown.
TEST(durable_stored, a_sqlite_file_from_before_full_shapes_is_marked_once) {
  using namespace grown;
  const grown_store stored;
  EXPECT_TRUE((stored.opens<house, sum>()));
  EXPECT_FALSE((stored.opens<house_of<bank::paid, card::paid, door, window>, sum>()));
  EXPECT_FALSE((stored.opens<swapped_doors, sum>()));
  EXPECT_TRUE((stored.opens<house, sum>()));
  EXPECT_TRUE((stored.opens<grown_door, sum>()));
  EXPECT_FALSE((stored.opens<house, sum>()));  // an enumerator was removed
}

TEST(durable_stored, a_sqlite_file_from_before_full_shapes_opens_with_more_enumerators) {
  EXPECT_TRUE((grown_store().opens<grown_door, grown::sum>()));
  EXPECT_FALSE((grown_store().opens<swapped_doors, grown::sum>()));
}

TEST(durable_stored, events_of_an_earlier_number_are_compared) {
  using namespace grown;
  const grown_store stored;
  const auto opens = [&stored]<class... Events>(std::type_identity<std::tuple<Events...>>) {
    return stored.opens<house, sum_of<2, Events...>>();
  };
#define EVENTS(...) std::type_identity<std::tuple<__VA_ARGS__>>()
  EXPECT_FALSE(opens(EVENTS(removed, added)));
  EXPECT_FALSE(opens(EVENTS(later::set, added, removed)));
  EXPECT_FALSE(opens(EVENTS(added, later::set, removed)));
  EXPECT_FALSE((stored.opens<house, sum_of<1, added, removed, later::set>>()));
  EXPECT_TRUE(opens(EVENTS(added, removed, later::set)));
#undef EVENTS
  // The program of before, and one that knows other events than the newer one.
  EXPECT_TRUE((stored.opens<house, sum>()));
  EXPECT_FALSE((stored.opens<house, sum_of<1, removed, added>>()));
}

}  // namespace
}  // namespace troupe::test
