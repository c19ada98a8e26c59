// Waits for Asio that are given up: by limits, by when_any, and with their actor; and the other way
// round.
#include <array>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "asio/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class asio_cancellation : public conformance {};

enum class limit { timeout, stop, deadline, loser, over_before, stopped_before };
constexpr std::array all_limits{limit::timeout, limit::stop,        limit::deadline,
                                limit::loser,   limit::over_before, limit::stopped_before};

// Awaits what never comes, within a limit of that kind. Returns the error's name.
template <class Make>
task<std::string> give_up(limit by, Make make) {
  std::stop_source source;
  try {
    switch (by) {
      case limit::timeout:
        co_await make().timeout(2ms);
        break;
      case limit::over_before:
        co_await make().timeout(0s);
        break;
      case limit::stopped_before:
        source.request_stop();
        co_await make().stop(source.get_token());
        break;
      case limit::stop: {
        const timer later = after(2ms, [&source] { source.request_stop(); });
        co_await make().stop(source.get_token());
        break;
      }
      case limit::deadline:
        co_await with_deadline(2ms, make);
        break;
      case limit::loser: {
        const auto first = co_await when_any(make(), sleep_for(2ms));
        co_return first.index() == 1 ? "lost" : "won";
      }
    }
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  }
  co_return "a value";
}
std::string expected(limit by) {
  switch (by) {
    case limit::timeout:
    case limit::over_before:
    case limit::deadline:
      return "timed_out";
    case limit::stop:
    case limit::stopped_before:
      return "cancelled";
    case limit::loser:
      return "lost";
  }
  return "";
}

TEST_P(asio_cancellation, each_limit_ends_a_timer_a_read_and_a_composed_read) {
  io_threads context(2);
  for (const limit by : all_limits) {
    runtime rt(options());
    int ended = 0;
    rt.spawn(
        [](limit how, asio::io_context* io, int* count) -> task<> {
          asio::steady_timer timer(*io, 1h);
          auto wait = [&timer] { return timer.async_wait(asio_token); };
          EXPECT_EQ(co_await give_up(how, wait), expected(how));
          socket_pair ends(*io);
          std::string bytes(100, '\0');
          auto read = [&] { return ends.near.async_read_some(asio::buffer(bytes), asio_token); };
          EXPECT_EQ(co_await give_up(how, read), expected(how));
          auto whole = [&] { return asio::async_read(ends.near, asio::buffer(bytes), asio_token); };
          EXPECT_EQ(co_await give_up(how, whole), expected(how));
          ++*count;
        },
        by, unchecked{&context.io}, unchecked{&ended});
    rt.run();
    EXPECT_EQ(ended, 1);
  }
}

TEST_P(asio_cancellation, a_tuple_has_the_error_of_the_cancelled_operation) {
  io_threads context;
  runtime rt(options());
  rt.spawn(
      [](asio::io_context* io) -> task<> {
        asio::steady_timer timer(*io, 1h);
        const auto [error] =
            co_await timer.async_wait(asio::experimental::as_tuple(asio_token)).timeout(2ms);
        EXPECT_EQ(error, asio::error::operation_aborted);
      },
      unchecked{&context.io});
  rt.run();
}

TEST_P(asio_cancellation, a_result_within_the_limit_is_given) {
  io_threads context;
  runtime rt(options());
  rt.spawn(
      [](asio::io_context* io) -> task<> {
        socket_pair ends(*io);
        char byte = 0;
        co_await asio::async_write(ends.far, asio::buffer("x", 1), asio_token).timeout(1h);
        std::stop_source never;
        const std::size_t count =
            co_await ends.near.async_read_some(asio::buffer(&byte, 1), asio_token)
                .timeout(1h)
                .stop(never.get_token());
        EXPECT_EQ(count, 1u);
        EXPECT_EQ(byte, 'x');
      },
      unchecked{&context.io});
  rt.run();
}

TEST_P(asio_cancellation, asio_cancels_and_the_task_sees_it) {
  io_threads context;
  runtime rt(options());
  int caught = 0;
  rt.spawn(
      [](asio::io_context* io, int* seen) -> task<> {
        asio::steady_timer timer(*io, 1h);
        auto start = [&timer, io](auto handler) {
          timer.async_wait(std::move(handler));
          asio::post(*io, [&timer] { timer.cancel(); });
        };
        auto wait = asio::async_initiate<const asio_token_t, void(asio::error_code)>(
            std::move(start), asio_token);
        try {
          co_await std::move(wait);
        } catch (const asio::system_error& thrown) {
          EXPECT_EQ(thrown.code(), asio::error::operation_aborted);
          ++*seen;
        }
      },
      unchecked{&context.io}, unchecked{&caught});
  rt.run();
  EXPECT_EQ(caught, 1);
}

// An operation that takes its time to end after its cancellation, and uses its buffer until then.
TEST_P(asio_cancellation, the_wait_ends_when_asio_has_ended_the_operation) {
  io_threads context;
  runtime rt(options());
  int caught = 0;
  rt.spawn(
      [](asio::io_context* io, int* seen) -> task<> {
        auto ended = std::make_shared<std::atomic<bool>>(false);
        auto slow = [](asio::io_context& on,
                       std::shared_ptr<std::atomic<bool>> done) -> asio::awaitable<void> {
          asio::steady_timer timer(on, 1h);
          asio::error_code ignored;
          co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
          co_await asio::this_coro::reset_cancellation_state();
          timer.expires_after(20ms);
          co_await timer.async_wait(asio::use_awaitable);
          *done = true;
          throw asio::system_error(asio::error::operation_aborted);
        };
        auto operation = asio::co_spawn(*io, slow(*io, ended), asio_token);
        try {
          co_await std::move(operation).timeout(2ms);
        } catch (const timed_out&) {
          EXPECT_TRUE(*ended);
          ++*seen;
        }
      },
      unchecked{&context.io}, unchecked{&caught});
  rt.run();
  EXPECT_EQ(caught, 1);
}

TEST_P(asio_cancellation, the_end_of_the_runtime_cancels_what_waits) {
  io_threads context;
  for (const stop_mode how : {stop_mode::drain, stop_mode::discard}) {
    std::atomic<int> begun{0}, ended{0};
    {
      runtime rt(options());
      rt.spawn(
          [](asio::io_context* io, std::atomic<int>* before, std::atomic<int>* after) -> task<> {
            socket_pair ends(*io);
            char bytes[100];
            ++*before;
            try {
              co_await ends.near.async_read_some(asio::buffer(bytes), asio_token);
            } catch (const cancelled&) {
              ++*after;
            }
          },
          unchecked{&context.io}, unchecked{&begun}, unchecked{&ended});
      while (begun == 0) rt.run_once(1ms);
      rt.stop(how);
      try {
        rt.run();
      } catch (const stalled&) {
      }
    }
    EXPECT_EQ(ended.load(), 1);
  }
}

// The cancellation and the end of the operation compete.
TEST_P(asio_cancellation, races_with_the_end_of_the_operation) {
  io_threads context(2);
  runtime rt(options());
  const int times = fewer(100);
  std::atomic<int> ended{0};
  for (int i = 0; i < 8; ++i) {
    rt.spawn(
        [](asio::io_context* io, std::atomic<int>* count, int many) -> task<> {
          for (int n = 0; n < many; ++n) {
            auto timer =
                std::make_unique<asio::steady_timer>(*io, std::chrono::microseconds(n % 50));
            try {
              co_await timer->async_wait(asio_token).timeout(std::chrono::microseconds(n % 40 + 1));
            } catch (const timed_out&) {
            }
            socket_pair ends(*io);
            char byte = 0;
            asio::post(*io, [to = std::move(ends.far)]() mutable {
              asio::error_code ignored;
              asio::write(to, asio::buffer("x", 1), ignored);
            });
            static_cast<void>(
                co_await when_any(ends.near.async_read_some(asio::buffer(&byte, 1), asio_token),
                                  sleep_for(std::chrono::microseconds(n % 60))));
            ++*count;
          }
        },
        unchecked{&context.io}, unchecked{&ended}, times);
  }
  rt.run();
  EXPECT_EQ(ended.load(), 8 * times);
}

// The steps of a composed operation run on one thread of the context, its cancellation on another.
TEST_P(asio_cancellation, races_with_the_steps_of_a_composed_operation) {
  io_threads context(2);
  runtime rt(options());
  const int times = fewer(100);
  std::atomic<int> ended{0};
  for (int i = 0; i < 4; ++i) {
    rt.spawn(
        [](asio::io_context* io, std::atomic<int>* count, int many) -> task<> {
          for (int n = 0; n < many; ++n) {
            socket_pair ends(*io);
            std::string bytes(64, '\0');
            std::thread writes([to = std::move(ends.far)]() mutable {
              asio::error_code failed;
              for (int sent = 0; sent < 60 && !failed; ++sent)
                asio::write(to, asio::buffer("x", 1), failed);
            });
            EXPECT_THROW(co_await asio::async_read(ends.near, asio::buffer(bytes), asio_token)
                             .timeout(std::chrono::microseconds(n % 40 * 10 + 1)),
                         std::exception);
            writes.join();
            ++*count;
          }
        },
        unchecked{&context.io}, unchecked{&ended}, times);
  }
  rt.run();
  EXPECT_EQ(ended.load(), 4 * times);
}

// tests/given_up/waits.txt: a socket that was accepted for a wait that has lost is closed.
TEST_P(asio_cancellation, an_asio_operation_that_is_given_up_keeps_or_frees_its_result) {
  io_threads context;
  runtime rt(options());
  rt.spawn(
      [](asio::io_context* io) -> task<> {
        asio::ip::tcp::acceptor door(*io, {asio::ip::address_v4::loopback(), 0});
        const auto first = co_await when_any(door.async_accept(asio_token), sleep_for(1ms));
        EXPECT_EQ(first.index(), 1u);
        asio::ip::tcp::socket peer(*io);
        co_await peer.async_connect(door.local_endpoint(), asio_token);
        // nothing was taken by the accept that was cancelled
        const auto accepted = co_await door.async_accept(asio_token);
        EXPECT_TRUE(accepted.is_open());
      },
      unchecked{&context.io});
  rt.run();
}

// An operation that ends after a while, whether it is cancelled or not.
struct deaf {
  using executor_type = asio::io_context::executor_type;
  executor_type get_executor() const { return io->get_executor(); }
  template <class Handler>
  void operator()(Handler&& handler) const {
    auto timer = std::make_shared<asio::steady_timer>(*io, lasts);
    timer->async_wait([timer, done = std::forward<Handler>(handler)](asio::error_code) mutable {
      done(asio::error_code(), 7);
    });
  }
  asio::io_context* io;
  std::chrono::nanoseconds lasts;
};
auto deaf_operation(asio::io_context& io, std::chrono::nanoseconds lasts = 2ms) {
  deaf initiation{&io, lasts};
  return asio::async_initiate<const asio_token_t, void(asio::error_code, int)>(
      std::move(initiation), asio_token);
}

// What an operation gives that ignores its cancellation goes to the task around it. As an argument
// of when_any it is dropped, which is counted.
TEST_P(asio_cancellation, what_a_deaf_operation_gives_is_not_lost_in_silence) {
  io_threads context;
  runtime rt(options());
  auto done = rt.spawn(
      [](asio::io_context* io) -> task<> {
        auto alone = deaf_operation(*io);
        auto first = co_await when_any(std::move(alone), yield());
        EXPECT_EQ(first.index(), 1u);
        int kept = 0;
        const auto keeps = [](asio::io_context& at, int& to) -> task<> {
          auto operation = deaf_operation(at);
          to = co_await std::move(operation);
        };
        auto second = co_await when_any(keeps(*io, kept), yield());
        EXPECT_EQ(second.index(), 1u);
        EXPECT_EQ(kept, 7);
      },
      unchecked{&context.io});
  rt.run();
  done.get();
  EXPECT_EQ(rt.metrics().errors_dropped, 1u);
}

// A helper that has won something waits for such a loser, and so do the branches beside it, but not
// for ever.
TEST_P(asio_cancellation, a_deaf_loser_holds_the_branches_beside_its_helper_for_a_while) {
  io_threads context;
  for (const std::chrono::nanoseconds lasts : {2'000'000ns, 1'500'000'000ns}) {
    runtime rt(options());
    auto done = rt.spawn(
        [](asio::io_context* io, std::chrono::nanoseconds span) -> task<std::size_t> {
          const auto gives = []() -> task<int> {
            co_await yield();
            co_return 7;
          };
          const auto helps = [](task<int> won, asio::io_context& at,
                                std::chrono::nanoseconds how_long) -> task<int> {
            auto operation = deaf_operation(at, how_long);
            auto first = co_await when_any(std::move(won), std::move(operation));
            EXPECT_EQ(first.index(), 0u);
            co_return std::get<0>(first);
          };
          const auto works = []() -> task<> {
            for (int i = 0; i < 10; ++i) co_await yield();
          };
          auto helper = helps(gives(), *io, span);
          auto first = co_await when_any(std::move(helper), works());
          co_return first.index();
        },
        unchecked{&context.io}, lasts);
    rt.run();
    const std::size_t winner = done.get();
    // Virtual time does not wait for Asio, and real time may be late.
    if (lasts > 100ms) {
      EXPECT_EQ(winner, 1u);
    }
    // the result of the operation, and the value of the helper if that has lost
    EXPECT_EQ(rt.metrics().errors_dropped, winner == 0 ? 1u : 2u);
  }
}

TROUPE_TEST_EACH(asio_cancellation, all_settings);

}  // namespace
}  // namespace troupe::test
