#include "jobs/pool/part_request.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/atomics.hpp"
#include "troupe/jobs/work_deque.hpp"

namespace troupe::jobs {
namespace {

struct alignas(8) token {
  std::uint64_t written = 0;  // plain: a thread that got it too early, or a second one, would race
};
struct alignas(8) group {};

// Real atomics, but for the fence, which is counted and may be refused, and for the patience: it
// lasts until the test ends it.
struct watched_atomics : base::std_atomics {
  static inline std::atomic<int> fences{0};
  static inline std::atomic<bool> refused{false}, over{false}, asking{false};
  static void begin(bool refuses, bool impatient) {
    fences = 0;
    asking = false;
    refused = refuses;
    over = impatient;
  }
  static bool heavy_fence() noexcept {
    ++fences;
    return !refused && base::std_atomics::heavy_fence();
  }
  struct patience {
    bool is_over() noexcept {
      asking = true;
      base::std_atomics::pause();
      return over;
    }
  };
};

using watched_deque = work_deque<token, watched_atomics>;
using watched_request = part_request<token, group, watched_atomics>;

constexpr auto wants_all = [](const token&, const group*) { return true; };
constexpr auto wants_none = [](const token&, const group*) { return false; };

// A searcher asks, and the owner answers once from then on.
template <class Wants>
watched_request::answered ask_beside_owner(watched_deque& deque, watched_request& request,
                                           const Wants& wants) {
  watched_request::answered reply;
  std::thread searcher([&] {
    EXPECT_TRUE(request.ask(nullptr));
    reply = request.await(nullptr);
  });
  while (!watched_atomics::asking) std::this_thread::yield();
  request.answer(deque, wants);
  searcher.join();
  return reply;
}

TEST(part_request, an_owner_gives_its_oldest_part_without_a_fence) {
  for (const bool refused : {false, true}) {
    watched_atomics::begin(refused, false);
    watched_deque deque;
    watched_request request;
    token parts[2];
    ASSERT_TRUE(deque.reserve(2));
    for (token& part : parts) deque.push(part);
    const auto reply = ask_beside_owner(deque, request, wants_all);
    EXPECT_TRUE(reply.by_owner);
    EXPECT_EQ(reply.part, &parts[0]);
    EXPECT_EQ(watched_atomics::fences, 0);
    EXPECT_FALSE(request.is_asked());
    EXPECT_EQ(deque.pop(), &parts[1]);
    EXPECT_EQ(deque.pop(), nullptr);
  }
}

TEST(part_request, an_owner_without_a_wanted_part_refuses) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}}) {
    watched_atomics::begin(false, false);
    watched_deque deque;
    watched_request request;
    token part;
    ASSERT_TRUE(deque.reserve(1));
    if (count != 0) deque.push(part);
    const auto reply = ask_beside_owner(deque, request, wants_none);
    EXPECT_TRUE(reply.by_owner);
    EXPECT_EQ(reply.part, nullptr);
    EXPECT_EQ(deque.count(), count);
  }
}

TEST(part_request, a_request_without_an_answer_is_withdrawn) {
  watched_atomics::begin(false, true);
  watched_deque deque;
  watched_request request;
  token part;
  ASSERT_TRUE(deque.reserve(1));
  deque.push(part);
  ASSERT_TRUE(request.ask(nullptr));
  EXPECT_TRUE(request.is_asked());
  EXPECT_FALSE(request.ask(nullptr)) << "a second searcher";
  EXPECT_FALSE(request.await(nullptr).by_owner);
  EXPECT_FALSE(request.is_asked());
  request.answer(deque, wants_all);  // there is no request
  EXPECT_EQ(deque.pop(), &part);
}

// An owner that pushes, answers and pops, and searchers that ask it and then help themselves.
TEST(part_request, each_part_is_given_out_once) {
  constexpr std::size_t parts_count = 20'000, searchers_count = 3;
  work_deque<token, base::std_atomics> deque;
  part_request<token, group, base::std_atomics> request;
  std::vector<token> parts(parts_count);
  std::atomic<std::size_t> taken{0};
  const auto take = [&](token* part) {
    if (part == nullptr) return;
    ++part->written;
    ++taken;
  };
  std::vector<std::thread> searchers;
  for (std::size_t i = 0; i < searchers_count; ++i) {
    searchers.emplace_back([&, asks = i + 1 != searchers_count] {
      while (taken < parts_count) {
        if (deque.count() == 0) {
          std::this_thread::yield();
          continue;
        }
        if (asks && request.ask(nullptr)) {
          const auto reply = request.await(nullptr);
          if (reply.by_owner) {
            take(reply.part);
            continue;
          }
        }
        take(deque.steal([](const token&) { return true; }));
      }
    });
  }
  for (std::size_t pushed = 0; taken < parts_count;) {
    for (int i = 0; i < 4 && pushed < parts_count; ++i) {
      ASSERT_TRUE(deque.reserve(1));
      ++parts[pushed].written;
      deque.push(parts[pushed++]);
    }
    request.answer(deque, wants_all);
    take(deque.pop());
  }
  for (std::thread& searcher : searchers) searcher.join();
  for (const token& part : parts) ASSERT_EQ(part.written, 2u);
}

}  // namespace
}  // namespace troupe::jobs
