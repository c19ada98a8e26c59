// Reads and writes do not allocate in the steady state: frames and blocks are used again.
#include <cstdlib>
#include <new>

#include "tls/support.hpp"

#if !TROUPE_TEST_SLOW

namespace {
std::atomic<bool> counts{false};
std::atomic<int> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (counts.load(std::memory_order_relaxed)) ++allocations;  // order: relaxed  a statistic
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace troupe::test {
namespace {

class tls_allocation : public tls_conformance {};

TEST_P(tls_allocation, transfers_do_not_allocate) {
  auto transfer = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    for (const std::size_t size : {100u, 3'000u, 40'000u}) {
      const std::string sent = some_bytes(size);
      std::string got(size, '\0');
      auto plain = [](tls_stream& from, tls_stream& to, const std::string& bytes,
                      std::string& room) -> task<> {
        co_await from.write_all(std::string_view(bytes));
        co_await to.read_exact(std::span<char>(room));
      };
      auto writes = [](tls_stream& to, const std::string& bytes) -> task<> {
        co_await to.write_all(std::string_view(bytes)).timeout(std::chrono::seconds(20));
      };
      auto reads = [](tls_stream& from, std::string& room) -> task<> {
        co_await from.read_exact(std::span<char>(room)).timeout(std::chrono::seconds(20));
      };
      for (const bool limits : {false, true}) {
        for (int i = 0; i < 25; ++i) {
          if (i == 5) allocations = 0;
          counts = i >= 5;
          if (limits) {
            co_await writes(pair.client, sent);
            co_await reads(pair.server, got);
          } else {
            co_await plain(pair.client, pair.server, sent, got);
          }
        }
        counts = false;
        EXPECT_EQ(allocations.load(), 0) << size << (limits ? " with limits" : "");
      }
    }
  };
  run(transfer());
}

// The simulated network is left out, since it allocates.
INSTANTIATE_TEST_SUITE_P(
    backends, tls_allocation,
    ::testing::Values(io_setting{{policy::work_stealing, 1, 1}, io_backend::epoll},
                      io_setting{{policy::work_stealing, 1, 1}, io_backend::io_uring}),
    [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test

#endif
