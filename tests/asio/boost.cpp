// Boost.Asio in place of Asio, in the same program as the other files of this folder, which use
// Asio.
#define TROUPE_BOOST_ASIO
#if defined(__clang__)
#define BOOST_ASIO_HAS_CO_AWAIT 1
#endif
#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio.hpp>

#include <chrono>
#include <string>
#include <thread>

#include "support/conformance.hpp"
#include "troupe/asio.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
namespace net = boost::asio;

class asio_of_boost : public conformance {};

class boost_thread {
 public:
  boost_thread() : thread_([this] { io.run(); }) {}
  boost_thread(const boost_thread&) = delete;
  boost_thread& operator=(const boost_thread&) = delete;
  ~boost_thread() {
    work_.reset();
    thread_.join();
  }
  net::io_context io;

 private:
  net::executor_work_guard<net::io_context::executor_type> work_ = net::make_work_guard(io);
  std::thread thread_;
};

TEST_P(asio_of_boost, operations_give_their_values) {
  boost_thread context;
  runtime rt(options());
  std::string read;
  rt.spawn(
      [](net::io_context* io, std::string* bytes) -> task<> {
        net::steady_timer timer(*io, 1ms);
        co_await timer.async_wait(asio_token);
        net::local::stream_protocol::socket near(*io), far(*io);
        net::local::connect_pair(near, far);
        const std::string sent = "bytes";
        EXPECT_EQ(co_await net::async_write(far, net::buffer(sent), asio_token), sent.size());
        bytes->resize(sent.size());
        EXPECT_EQ(co_await net::async_read(near, net::buffer(*bytes), asio_token), sent.size());
      },
      unchecked{&context.io}, unchecked{&read});
  rt.run();
  EXPECT_EQ(read, "bytes");
}

TEST_P(asio_of_boost, operations_throw_their_errors) {
  boost_thread context;
  runtime rt(options());
  int caught = 0;
  rt.spawn(
      [](net::io_context* io, int* seen) -> task<> {
        net::local::stream_protocol::socket near(*io), far(*io);
        net::local::connect_pair(near, far);
        far.close();
        char byte = 0;
        try {
          co_await near.async_read_some(net::buffer(&byte, 1), asio_token);
        } catch (const boost::system::system_error& thrown) {
          EXPECT_EQ(thrown.code(), net::error::eof);
          ++*seen;
        }
      },
      unchecked{&context.io}, unchecked{&caught});
  rt.run();
  EXPECT_EQ(caught, 1);
}

// Without cancellation of single operations, which came with Boost 1.77, the wait lasts until the
// operation has ended by itself.
TEST_P(asio_of_boost, a_limit_ends_the_wait) {
  boost_thread context;
  runtime rt(options());
  int late = 0;
  rt.spawn(
      [](net::io_context* io, int* seen) -> task<> {
        net::steady_timer timer(*io, 20ms);
        try {
          co_await timer.async_wait(asio_token).timeout(0s);
        } catch (const timed_out&) {
          ++*seen;
        }
        try {
          co_await timer.async_wait(asio_token).timeout(1ms);
        } catch (const timed_out&) {
          ++*seen;
        }
      },
      unchecked{&context.io}, unchecked{&late});
  rt.run();
#if TROUPE_ASIO_CANCELS
  EXPECT_EQ(late, 2);
#else
  EXPECT_EQ(late, 1);
#endif
}

TEST_P(asio_of_boost, functions_run_on_the_pool) {
  runtime rt(options());
  const asio_executor on(rt);
  std::atomic<int> seen{0};
  net::post(on, [&] { ++seen; });
  net::dispatch(on, [&] { ++seen; });
  const auto serial = boost::asio::make_strand(on);
  for (int i = 0; i < 10; ++i) net::post(serial, [&] { ++seen; });
  rt.spawn(
      [](runtime* of, std::atomic<int>* count) -> task<> {
        net::steady_timer timer(asio_executor(*of), 1ms);
        co_await timer.async_wait(asio_token);
        ++*count;
      },
      unchecked{&rt}, unchecked{&seen});
  rt.run();
  EXPECT_EQ(seen.load(), 13);
}

TROUPE_TEST_EACH(asio_of_boost, all_settings);

}  // namespace
}  // namespace troupe::test
