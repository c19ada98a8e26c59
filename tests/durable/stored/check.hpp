// What holds of a store that the program in writer.cxx wrote, whatever the database.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "durable/stored/classes.hpp"

namespace troupe::test {

using kept_storage = std::function<std::unique_ptr<durable::storage>(runtime&)>;

namespace {

template <class Error, class Call>
task<bool> is_refused(Call call) {
  try {
    co_await std::move(call);
  } catch (const Error&) {
    co_return true;
  }
  co_return false;
}

// States, messages that waited, reminders and ids are there.
task<> read_kept(runtime& rt, kept_storage place) {
  using durable::message_id;
  kept::holder::ends = true;
  auto storage = place(rt);
  auto opens = kept::open(rt, std::move(storage));
  const durable::store store = co_await std::move(opens);
  const auto ada = store.get<kept::account>("ada");
  EXPECT_EQ(co_await ada.ask<&kept::account::look>(), 12);  // blue, and stopped
  EXPECT_EQ(co_await store.get<kept::counter>("c").ask<&kept::counter::value>(), 21);
  // An id of that time matches whatever it is used for, as it did then.
  const auto old_id = ada.with_id(message_id::of("order 17"));
  EXPECT_EQ(co_await old_id.ask<&kept::account::deposit>(10), 110);
  EXPECT_EQ(co_await old_id.ask<&kept::account::deposit>(11), 110);
  EXPECT_EQ(co_await old_id.ask<&kept::account::withdraw>(10), 110);
  EXPECT_EQ(co_await ada.ask<&kept::account::deposit>(0), 110);
  // Of a message that waited the inbox has the method and the arguments.
  const auto holder = store.get<kept::holder>("h");
  EXPECT_EQ(co_await holder.ask<&kept::holder::count>(), 6);
  const auto waited = holder.with_id(message_id::of("order 18"));
  EXPECT_TRUE(co_await is_refused<durable::id_mismatch>(waited.ask<&kept::holder::hold>(6)));
  EXPECT_EQ(co_await waited.ask<&kept::holder::hold>(5), 5);
  // A new id stands for its message.
  const auto new_id = ada.with_id(message_id::of("order 19"));
  EXPECT_EQ(co_await new_id.ask<&kept::account::deposit>(5), 115);
  EXPECT_TRUE(co_await is_refused<durable::id_mismatch>(new_id.ask<&kept::account::withdraw>(5)));
  EXPECT_EQ(store.counts().dead_letters, 0u);  // since it was opened
}

// The same class and method, with other enumerators.
enum class reordered : std::uint8_t { green, red, blue };
struct changed_account {
  std::int64_t cents = 0;
  reordered painted = reordered::red;
  std::variant<kept::started, kept::stopped> state{};
  std::vector<std::string> lines;
  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
};

task<> open_changed(runtime& rt, kept_storage place) {
  auto storage = place(rt);
  auto opens = durable::store::open(
      rt, std::move(storage), durable::kind<changed_account, &changed_account::deposit>("account"));
  static_cast<void>(co_await std::move(opens));
}

void run_task(const std::function<task<>(runtime&)>& start) {
  runtime rt;
  future<> done = rt.spawn(start(rt));
  rt.run();
  done.get();
}

// Twice: a class is marked anew when it is opened, and then others are told apart.
void check_kept_store(const kept_storage& place) {
  for (int round = 0; round < 2; ++round) {
    if (round == 0) run_task([&](runtime& rt) { return read_kept(rt, place); });
    EXPECT_THROW(run_task([&](runtime& rt) { return open_changed(rt, place); }),
                 durable::schema_error);
  }
}

}  // namespace
}  // namespace troupe::test
