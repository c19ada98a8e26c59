// The executor of Asio over the pool.
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "asio/fixture.hpp"
#include "troupe/runtime/attachment.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

static_assert(asio::execution::is_executor<asio_executor>::value);
static_assert(asio::can_require<asio_executor, asio::execution::blocking_t::never_t>::value);
static_assert(
    asio::can_require<asio_executor, asio::execution::outstanding_work_t::tracked_t>::value);
static_assert(asio::can_query<asio_executor, asio::execution::context_t>::value);
static_assert(std::is_nothrow_copy_constructible_v<asio_executor>);

class asio_on_pool : public conformance {};

TEST_P(asio_on_pool, runs_what_is_posted_dispatched_and_deferred) {
  runtime rt(options());
  const asio_executor on(rt);
  std::atomic<int> seen{0};
  asio::post(on, [&] { ++seen; });
  asio::dispatch(on, [&] { ++seen; });
  asio::defer(on, [&] { ++seen; });
  auto owned = std::make_unique<int>(1);
  asio::post(on, [&seen, owned = std::move(owned)] { seen += *owned; });
  asio::any_io_executor any = on;
  asio::post(any, [&] { ++seen; });
  rt.run();
  EXPECT_EQ(seen.load(), 5);
}

TEST_P(asio_on_pool, executors_of_one_runtime_are_equal) {
  runtime one(options()), other(options());
  EXPECT_EQ(asio_executor(one), asio_executor(one));
  EXPECT_NE(asio_executor(one), asio_executor(other));
  EXPECT_EQ(&asio::query(asio_executor(one), asio::execution::context),
            &asio::query(asio_executor(one), asio::execution::context));
  asio_executor copy(one);
  copy = asio_executor(other);
  EXPECT_EQ(copy, asio_executor(other));
  EXPECT_EQ(asio::query(copy, asio::execution::blocking), asio::execution::blocking.never);
  EXPECT_EQ(asio::query(copy, asio::execution::occupancy), other.workers());
}

TEST_P(asio_on_pool, outstanding_work_holds_the_program_open) {
  runtime rt(options());
  bool released = false;
  auto work = asio::make_work_guard(asio_executor(rt));
  std::thread outside([&released, held = std::move(work)]() mutable {
    std::this_thread::yield();
    released = true;
    held.reset();
  });
  rt.run();
  EXPECT_TRUE(released);
  outside.join();
}

TEST_P(asio_on_pool, a_bound_handler_completes_there) {
  io_threads context;
  runtime rt(options());
  bool on_context = true;
  asio::steady_timer timer(context.io, 1ms);
  timer.async_wait(asio::bind_executor(
      asio_executor(rt), [&](asio::error_code) { on_context = context.runs_here(); }));
  rt.run();
  EXPECT_FALSE(on_context);
}

TEST_P(asio_on_pool, a_serial_executor_orders_its_functions) {
  runtime rt(options());
  const auto serial = asio::make_strand(asio_executor(rt));
  std::vector<int> order;
  constexpr int count = 1'000;
  for (int i = 0; i < count; ++i) asio::post(serial, [&order, i] { order.push_back(i); });
  rt.run();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(asio_on_pool, an_exception_is_a_failure) {
  runtime rt(options());
  asio::post(asio_executor(rt), [] { throw std::logic_error("posted"); });
  EXPECT_THROW(rt.run(), std::logic_error);
}

TEST_P(asio_on_pool, timers_and_sockets_need_no_context_of_their_own) {
  runtime rt(options());
  bool done = false;
  rt.spawn(
      [](runtime* on, bool* ended) -> task<> {
        asio::steady_timer timer(asio_executor(*on), 1ms);
        co_await timer.async_wait(asio_token);
        timer.expires_after(1h);
        bool late = false;
        try {
          co_await timer.async_wait(asio_token).timeout(2ms);
        } catch (const timed_out&) {
          late = true;
        }
        EXPECT_TRUE(late);
        asio::local::stream_protocol::socket near{asio_executor(*on)}, far{asio_executor(*on)};
        asio::local::connect_pair(near, far);
        char byte = 0;
        co_await asio::async_write(far, asio::buffer("x", 1), asio_token);
        co_await asio::async_read(near, asio::buffer(&byte, 1), asio_token);
        EXPECT_EQ(byte, 'x');
        *ended = true;
      },
      unchecked{&rt}, unchecked{&done});
  rt.run();
  EXPECT_TRUE(done);
}

TEST_P(asio_on_pool, a_runtime_ends_with_work_that_waits) {
  std::shared_ptr<int> kept = std::make_shared<int>(0);
  {
    runtime rt(options());
    const auto serial = asio::make_strand(asio_executor(rt));
    for (int i = 0; i < 100; ++i) asio::post(serial, [kept] { ++*kept; });
    rt.spawn(
        [](runtime* on) -> task<> {
          asio::steady_timer timer(asio_executor(*on), 1h);
          co_await timer.async_wait(asio_token);
        },
        unchecked{&rt});
    rt.run_once(0s);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

// A component's thread posts a function while the runtime ends, as Asio's own thread may. The
// thread waits in one of the moves that post() makes until the pool has ended, but no longer than
// this span, since the end may have to wait for the thread. A worker may make the later moves.
constexpr auto pause_max = 30ms;

struct late_post {
  explicit late_post(int pause_at_move) : pause_at(pause_at_move) {}
  const int pause_at;
  std::atomic<int> moves{0};
  std::promise<void> begun;
  std::promise<void> pool_ended;
  std::atomic<bool> is_begun{false};
  void begin() {
    if (!is_begun.exchange(true)) begun.set_value();
  }
};

struct late_procedure {
  explicit late_procedure(std::shared_ptr<late_post> posted) : post(std::move(posted)) {}
  late_procedure(late_procedure&& other) noexcept : post(std::move(other.post)) {
    if (++post->moves != post->pause_at) return;
    post->begin();
    post->pool_ended.get_future().wait_for(pause_max);
  }
  void operator()() const {}
  std::shared_ptr<late_post> post;
};

class posting_component final : public detail::attachment {
 public:
  static inline const char key = 0;
  void start(runtime& rt, const std::shared_ptr<late_post>& post) {
    post_ = post;
    thread_ = std::thread([&rt, post] {
      asio_executor(rt).execute(late_procedure(post));
      post->begin();  // fewer moves than that
    });
  }
  void close() noexcept override {
    post_->pool_ended.set_value();
    post_ = nullptr;
    thread_.join();
  }

 private:
  std::shared_ptr<late_post> post_;
  std::thread thread_;
};

TEST_P(asio_on_pool, a_function_that_a_component_posts_while_the_runtime_ends_is_destroyed) {
  constexpr int moves_max = 8;
  for (int pause_at = 1; pause_at <= moves_max; ++pause_at) {
    const auto post = std::make_shared<late_post>(pause_at);
    {
      runtime rt(options());
      auto make = []() -> std::unique_ptr<detail::attachment> {
        return std::make_unique<posting_component>();
      };
      auto& component =
          static_cast<posting_component&>(detail::attach(rt, &posting_component::key, make));
      component.start(rt, post);
      post->begun.get_future().wait();
    }
    EXPECT_EQ(post.use_count(), 1) << "paused at move " << pause_at;
  }
}

TROUPE_TEST_EACH(asio_on_pool, all_settings);

}  // namespace
}  // namespace troupe::test
