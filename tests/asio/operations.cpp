// Operations of Asio that are awaited by asio_token: values, errors, and where the task continues.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "asio/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class asio_operations : public conformance {};

// An operation with any signature, which completes on the context's thread with these values.
template <class Signature, class... Values>
auto give(asio::io_context& io, Values... values) {
  return asio::async_initiate<const asio_token_t, Signature>(
      [&io](auto handler, auto... given) {
        auto call = [handler = std::move(handler),
                     given = std::make_tuple(std::move(given)...)]() mutable {
          std::apply([&](auto&... each) { std::move(handler)(std::move(each)...); }, given);
        };
        asio::post(io, std::move(call));
      },
      asio_token, std::move(values)...);
}

TEST_P(asio_operations, give_their_values) {
  io_threads context;
  runtime rt(options());
  rt.spawn(
      [](asio::io_context* io) -> task<> {
        co_await give<void()>(*io);
        EXPECT_EQ(co_await give<void(int)>(*io, 5), 5);
        const std::pair both =
            std::make_pair(co_await give<void(std::error_code, int)>(*io, std::error_code(), 6),
                           co_await give<void(std::exception_ptr, int)>(*io, nullptr, 7));
        EXPECT_EQ(both, std::make_pair(6, 7));
        co_await give<void(std::error_code)>(*io, std::error_code());
        const auto [number, text] = co_await give<void(std::error_code, int, std::string)>(
            *io, std::error_code(), 8, "eight");
        EXPECT_EQ(number, 8);
        EXPECT_EQ(text, "eight");
        auto owned = co_await give<void(std::unique_ptr<int>)>(*io, std::make_unique<int>(9));
        EXPECT_EQ(*owned, 9);
        auto second = co_await give<void(std::error_code, int, std::unique_ptr<int>)>(
            *io, std::error_code(), 1, std::make_unique<int>(10));
        EXPECT_EQ(*std::get<1>(second), 10);
      },
      unchecked{&context.io});
  rt.run();
}

TEST_P(asio_operations, throw_their_errors) {
  io_threads context;
  runtime rt(options());
  int caught = 0;
  rt.spawn(
      [](asio::io_context* io, int* seen) -> task<> {
        try {
          co_await give<void(std::error_code, int)>(
              *io, asio::error::make_error_code(asio::error::eof), 5);
        } catch (const asio::system_error& thrown) {
          EXPECT_EQ(thrown.code(), asio::error::eof);
          ++*seen;
        }
        try {
          co_await give<void(std::exception_ptr)>(*io,
                                                  std::make_exception_ptr(std::logic_error("own")));
        } catch (const std::logic_error& thrown) {
          EXPECT_STREQ(thrown.what(), "own");
          ++*seen;
        }
        // cancelled by Asio's side, and not by troupe
        try {
          co_await give<void(std::error_code)>(
              *io, asio::error::make_error_code(asio::error::operation_aborted));
        } catch (const asio::system_error& thrown) {
          EXPECT_EQ(thrown.code(), asio::error::operation_aborted);
          ++*seen;
        }
      },
      unchecked{&context.io}, unchecked{&caught});
  rt.run();
  EXPECT_EQ(caught, 3);
}

TEST_P(asio_operations, give_all_arguments_as_a_tuple) {
  io_threads context;
  runtime rt(options());
  rt.spawn(
      [](asio::io_context* io) -> task<> {
        socket_pair ends(*io);
        ends.far.close();
        char bytes[4];
        const auto [failed, count] = co_await ends.near.async_read_some(
            asio::buffer(bytes), asio::experimental::as_tuple(asio_token));
        EXPECT_EQ(failed, asio::error::eof);
        EXPECT_EQ(count, 0u);
      },
      unchecked{&context.io});
  rt.run();
}

TEST_P(asio_operations, move_bytes_over_tcp) {
  io_threads context;
  runtime rt(options());
  using asio::ip::tcp;
  tcp::acceptor door(context.io, {asio::ip::address_v4::loopback(), 0});
  std::string echoed;
  rt.spawn(
      [](tcp::acceptor* listens) -> task<> {
        tcp::socket peer = co_await listens->async_accept(asio_token);
        std::string line;
        const std::size_t size =
            co_await asio::async_read_until(peer, asio::dynamic_buffer(line), '\n', asio_token);
        co_await asio::async_write(peer, asio::buffer(line, size), asio_token);
      },
      unchecked{&door});
  rt.spawn(
      [](asio::io_context* io, tcp::endpoint to, std::string* back) -> task<> {
        tcp::socket peer(*io);
        co_await peer.async_connect(to, asio_token);
        const std::string sent = "a line\n";
        EXPECT_EQ(co_await asio::async_write(peer, asio::buffer(sent), asio_token), sent.size());
        back->resize(sent.size());
        co_await asio::async_read(peer, asio::buffer(*back), asio_token);
      },
      unchecked{&context.io}, door.local_endpoint(), unchecked{&echoed});
  rt.run();
  EXPECT_EQ(echoed, "a line\n");
}

TEST_P(asio_operations, await_coroutines_of_asio) {
  io_threads context;
  runtime rt(options());
  rt.spawn(
      [](asio::io_context* io) -> task<> {
        auto slow = [](asio::io_context& on) -> asio::awaitable<int> {
          asio::steady_timer timer(on, 1ms);
          co_await timer.async_wait(asio::use_awaitable);
          co_return 5;
        };
        EXPECT_EQ(co_await asio::co_spawn(*io, slow(*io), asio_token), 5);
      },
      unchecked{&context.io});
  rt.run();
}

struct Counter {
  static constexpr bool reentrant = true;
  explicit Counter(io_threads* where) : context(where) {}
  task<> wait(int times) {
    for (int i = 0; i < times; ++i) {
      enter();
      asio::steady_timer timer(context->io, std::chrono::microseconds(i % 3));
      co_await timer.async_wait(asio_token);
      enter();
      co_await asio::post(context->io, asio_token);
    }
  }
  // Handlers overlap at their waits, and nowhere else.
  void enter() {
    EXPECT_FALSE(context->runs_here());
    EXPECT_FALSE(inside.exchange(true));
    ++plain;
    EXPECT_TRUE(inside.exchange(false));
  }
  io_threads* context;
  std::atomic<bool> inside{false};
  int plain = 0;  // a race for the sanitizer
};

TEST_P(asio_operations, continue_in_turns_of_their_actor) {
  const int times = fewer(50);
  io_threads context(3);
  runtime rt(options());
  auto counter = rt.spawn<Counter>(&context);
  std::vector<future<void>> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(counter.ask<&Counter::wait>(times));
  rt.run();
  int seen = 0;
  auto read = counter.ask([](Counter& self) { return self.plain; });
  read.then([&seen](int n) { seen = n; });
  rt.run();
  EXPECT_EQ(seen, 8 * 2 * times);
}

TEST_P(asio_operations, ten_thousand_complete) {
  const int tasks = fewer(100), times = 100;
  io_threads context(2);
  runtime rt(options());
  std::atomic<int> done{0};
  for (int i = 0; i < tasks; ++i) {
    rt.spawn(
        [](asio::io_context* io, std::atomic<int>* count, int many) -> task<> {
          for (int n = 0; n < many; ++n) {
            co_await asio::post(*io, asio_token);
            ++*count;
          }
        },
        unchecked{&context.io}, unchecked{&done}, times);
  }
  rt.run();
  EXPECT_EQ(done.load(), tasks * times);
}

// Without a hold run() would throw `stalled`.
TEST_P(asio_operations, hold_the_program_open) {
  io_threads context;
  for (int i = 0; i < 20; ++i) {
    runtime rt(options());
    bool done = false;
    rt.spawn(
        [](asio::io_context* io, bool* ended) -> task<> {
          asio::steady_timer timer(*io, 1ms);
          co_await timer.async_wait(asio_token);
          *ended = true;
        },
        unchecked{&context.io}, unchecked{&done});
    rt.run();
    EXPECT_TRUE(done);
  }
}

TEST_P(asio_operations, a_start_that_throws_is_thrown) {
  runtime rt(options());
  int caught = 0;
  rt.spawn(
      [](int* seen) -> task<> {
        auto start = [](auto handler) {
          const auto dropped = std::move(handler);
          throw std::logic_error("no start");
        };
        try {
          auto begun =
              asio::async_initiate<const asio_token_t, void(int)>(std::move(start), asio_token);
          co_await std::move(begun);
        } catch (const std::logic_error&) {
          ++*seen;
        }
      },
      unchecked{&caught});
  rt.run();
  EXPECT_EQ(caught, 1);
}

TEST_P(asio_operations, a_handler_that_completes_at_once_is_no_recursion) {
  runtime rt(options());
  int sum = 0;
  rt.spawn(
      [](int* total) -> task<> {
        for (int i = 0; i < 10'000; ++i) {
          auto start = [](auto handler) { std::move(handler)(1); };
          auto begun =
              asio::async_initiate<const asio_token_t, void(int)>(std::move(start), asio_token);
          *total += co_await std::move(begun);
        }
      },
      unchecked{&sum});
  rt.run();
  EXPECT_EQ(sum, 10'000);
}

TEST_P(asio_operations, a_context_that_ends_first_breaks_the_promise) {
  runtime rt(options());
  auto context = std::make_unique<asio::io_context>();
  std::atomic<bool> waits{false};
  int caught = 0;
  rt.spawn(
      [](asio::io_context* io, std::atomic<bool>* begun, int* seen) -> task<> {
        auto start = [io, begun](auto handler) {
          asio::post(*io, std::move(handler));
          *begun = true;
        };
        auto operation =
            asio::async_initiate<const asio_token_t, void()>(std::move(start), asio_token);
        try {
          co_await std::move(operation);
        } catch (const broken_promise&) {
          ++*seen;
        }
      },
      unchecked{context.get()}, unchecked{&waits}, unchecked{&caught});
  std::thread ends([&context, &waits] {
    while (!waits) std::this_thread::yield();
    context.reset();
  });
  while (!waits) rt.run_once(1ms);
  rt.run();
  ends.join();
  EXPECT_EQ(caught, 1);
}

TROUPE_TEST_EACH(asio_operations, all_settings);

}  // namespace
}  // namespace troupe::test
