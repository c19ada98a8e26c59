#include "http/server/numbers/request_counts.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace troupe::http {
namespace {

std::uint64_t count_all(const request_counts& counts) {
  std::uint64_t all = counts.others() == nullptr ? 0 : counts.others()->count();
  counts.for_each([&](const request_series& series) { all += series.took.count(); });
  return all;
}

std::size_t count_series(const request_counts& counts) {
  std::size_t series = 0;
  counts.for_each([&](const request_series&) { ++series; });
  return series;
}

TEST(request_counts_of_routes, series_beyond_the_limit_are_counted_together) {
  request_counts counts;
  const std::vector<router::route> routes(request_counts::series_max + 3);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (i == request_counts::series_max && round == 0) {
        EXPECT_EQ(counts.others(), nullptr);
      }
      counted_request request;
      request.begin(counts, &routes[i], method::get);
      if (i % 100 == 0) {
        EXPECT_EQ(counts.in_flight(), 1u);  // it walks along all series
      }
      request.note_status(200);
    }
  }
  EXPECT_EQ(count_series(counts), request_counts::series_max);
  ASSERT_NE(counts.others(), nullptr);
  EXPECT_EQ(counts.others()->count(), 2 * 3u);
  EXPECT_EQ(count_all(counts), 2 * routes.size());
  EXPECT_EQ(counts.in_flight(), 0u);
}

// A connection keeps the series of its last request, and looks whether the next one is like it.
TEST(request_counts_of_routes, requests_of_one_connection_may_all_differ) {
  request_counts counts;
  const std::vector<router::route> routes(2);
  counted_request request;
  constexpr std::uint64_t rounds = 10;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (const router::route& route : routes) {
      for (const method by : {method::get, method::post}) {
        for (const int status : {200, 204, 404}) {
          request.begin(counts, &route, by);
          request.note_status(status);
          request.end();
        }
      }
    }
    request.begin(counts, nullptr, method::get);  // it ends without an answer
    request.end();
  }
  EXPECT_EQ(count_series(counts), 2 * 2 * 2 + 1u);
  counts.for_each([&](const request_series& series) {
    const std::uint64_t wanted = series.status_class == 2 ? 2 * rounds : rounds;
    EXPECT_EQ(series.took.count(), wanted) << series.status_class;
    EXPECT_EQ(series.route == nullptr, series.status_class == 0);
  });
}

TEST(request_counts_of_routes, threads_that_begin_and_end_requests_lose_none) {
  request_counts counts;
  const std::vector<router::route> routes(3);
  constexpr std::size_t threads = 8, requests = 2'000;
  std::vector<counted_request> begun_elsewhere(threads);
  for (std::size_t i = 0; i < threads; ++i)
    begun_elsewhere[i].begin(counts, &routes[0], method::get);
  {
    std::vector<std::jthread> working;
    for (std::size_t i = 0; i < threads; ++i) {
      working.emplace_back([&, i] {
        begun_elsewhere[i].end();  // a connection's task moves from thread to thread
        counted_request request;
        for (std::size_t n = 0; n < requests; ++n) {
          request.begin(counts, &routes[n % routes.size()], method::get);
          request.note_status(200);
          request.end();
        }
      });
    }
  }
  EXPECT_EQ(counts.in_flight(), 0u);
  EXPECT_EQ(count_all(counts), threads * (requests + 1));
}

}  // namespace
}  // namespace troupe::http
