// Locks that are taken in orders which differ: in a ring of three, across an ask of an actor,
// across a full channel, and by readers that become writers.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "explore/found.hpp"
#include "explore/planted.hpp"
#include "troupe/troupe.hpp"

namespace planted {
namespace {

using shared_lock = std::shared_ptr<troupe::mutex>;

// ---- three locks in a ring: none of the pairs is taken in both orders ----

troupe::task<> eat(shared_lock left, shared_lock right, int thinks) {
  for (int i = 0; i < thinks; ++i) co_await troupe::yield();
  auto first = co_await left->lock();
  auto second = co_await right->lock();
}

void lock_in_a_ring(troupe::explored_run&) {
  troupe::runtime rt;
  shared_lock forks[3];
  for (shared_lock& fork : forks) fork = std::make_shared<troupe::mutex>();
  // each task is usually done when the next one begins
  for (int i = 0; i < 3; ++i) rt.spawn(eat(forks[i], forks[(i + 1) % 3], i * 2));
  rt.run();
}

// ---- a lock is held across an ask of an actor, whose other handler wants it ----

struct Archive {
  shared_lock busy;
  int books = 0;
  troupe::task<> tidy() {
    auto held = co_await busy->lock();
    ++books;
  }
  int count() { return books; }
};

troupe::task<> count_books(troupe::ref<Archive> archive, shared_lock busy) {
  auto held = co_await busy->lock();
  static_cast<void>(co_await archive.ask<&Archive::count>());
}

struct Librarian {
  troupe::ref<Archive> archive;
  void tidy(int breaks) {
    if (breaks == 0) return archive.tell<&Archive::tidy>();
    troupe::self(this).tell<&Librarian::tidy>(breaks - 1);
  }
};

void lock_across_an_ask(troupe::explored_run&) {
  troupe::runtime rt;
  auto busy = std::make_shared<troupe::mutex>();
  auto archive = rt.spawn<Archive>(busy);
  rt.spawn<Librarian>(archive).tell<&Librarian::tidy>(8);
  rt.spawn(count_books(archive, busy));
  rt.run();
}

// ---- a lock is held across a send into a full channel, whose receiver wants it ----

struct Belt {
  troupe::mutex busy;
  troupe::channel<int> parts = troupe::channel<int>::bounded(1);
};

troupe::task<> put_parts(std::shared_ptr<Belt> belt) {
  auto held = co_await belt->busy.lock();
  for (int i = 0; i < 2; ++i) co_await belt->parts.send(i);
}
troupe::task<> take_parts(std::shared_ptr<Belt> belt) {
  for (int i = 0; i < 2; ++i) {
    // usually before the other one has the lock
    { auto held = co_await belt->busy.lock(); }
    static_cast<void>(co_await belt->parts.receive());
  }
}

void lock_across_a_full_channel(troupe::explored_run&) {
  troupe::runtime rt;
  auto belt = std::make_shared<Belt>();
  rt.spawn(take_parts(belt));
  rt.spawn(put_parts(belt));
  rt.run();
}

class lock_orders : public testing::TestWithParam<bug> {};

TEST_P(lock_orders, are_found_reduced_and_repeated) {
  expect_found_reduced_and_repeated(GetParam());
}

const bug all[] = {
    {"in_a_ring", lock_in_a_ring, "deadlock"},
    {"across_an_ask", lock_across_an_ask, "deadlock"},
    {"across_a_full_channel", lock_across_a_full_channel, "suspended"},
};
INSTANTIATE_TEST_SUITE_P(each, lock_orders, testing::ValuesIn(all),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace planted
