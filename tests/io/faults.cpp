// The fault table: every system call comes to every error once, at its first call and at a later one. Each time the
// program comes to its end, who is refused learns that by a typed error, and no descriptor is left.
#include <cstring>

#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr auto far = 10s;  // a wait that comes to that hangs
constexpr std::size_t bytes_each_way = 3'000;

struct outcomes {
  std::atomic<int> fine{0}, refused{0}, hung{0};
  std::atomic<int> code{0};
  std::stop_source end;  // one side has failed: the other one need not wait for it
};

// One part of the conversation, and what it comes to.
template <class Part>
task<> watched(Part part, outcomes& seen) {
  try {
    co_await part();
    ++seen.fine;
  } catch (const io_error& e) {
    ++seen.refused;
    seen.end.request_stop();
    int none = 0;
    seen.code.compare_exchange_strong(none, e.code().value());
  } catch (const end_of_stream&) {
    ++seen.refused;
    seen.end.request_stop();
  } catch (const timed_out&) {
    ++seen.hung;
  } catch (const cancelled&) {
    ++seen.refused;
  }
}

task<> serve(tcp_listener listener, std::stop_token end) {
  tcp_stream peer = co_await listener.accept().timeout(far).stop(end);
  std::string all(bytes_each_way, '\0');
  co_await peer.read_exact(all).timeout(far).stop(end);
  co_await peer.write_all(std::move(all)).timeout(far).stop(end);
}

task<> ask(endpoint at, std::stop_token end) {
  tcp_stream peer = co_await tcp_stream::connect(at).timeout(far).stop(end);
  co_await peer.write_all(std::string(bytes_each_way, 'x')).timeout(far).stop(end);
  peer.shutdown_write();
  std::string all(bytes_each_way, '\0');
  co_await peer.read_exact(all).timeout(far).stop(end);
  if (all != std::string(bytes_each_way, 'x')) ADD_FAILURE() << "other bytes";
  std::array<char, 1> none;
  const std::size_t more = co_await peer.read(none).timeout(far).stop(end);
  if (more != 0) ADD_FAILURE() << "more bytes";
}

task<> through_a_pipe(std::stop_token end) {
  auto ends = pipe_stream::make();
  co_await ends.second.write_all(std::string(bytes_each_way, 'y')).timeout(far).stop(end);
  std::string all(bytes_each_way, '\0');
  co_await ends.first.read_exact(all).timeout(far).stop(end);
}

task<> converse(runtime& rt, outcomes& seen) {
  tcp_listener listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  auto serving = [&listener, &seen] { return serve(std::move(listener), seen.end.get_token()); };
  auto asking = [at, &seen] { return ask(at, seen.end.get_token()); };
  rt.spawn(watched(std::move(asking), seen));
  auto piping = [&seen] { return through_a_pipe(seen.end.get_token()); };
  rt.spawn(watched(std::move(piping), seen));
  co_await watched(std::move(serving), seen);
}

class io_faults : public testing::TestWithParam<call> {
 protected:
  // How the conversation goes when the nth call of this kind comes to `fault`; false when there was none.
  bool run(int nth, int fault, unsigned workers, outcomes& seen) {
    const int before = open_files();
    faulty_kernel faulty(GetParam(), nth, fault);
    {
      const io::replaced_kernel replaced(faulty);
      runtime rt({.workers = workers, .io = io_backend::epoll});
      auto whole = [&rt, &seen] { return converse(rt, seen); };
      rt.spawn(watched(std::move(whole), seen));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
    EXPECT_EQ(seen.hung.load(), 0);
    return faulty.failed();
  }
};

TEST_P(io_faults, each_error_is_typed_and_nothing_is_left) {
  for (const unsigned workers : {1u, 2u}) {
    for (const int fault : {EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNRESET, EPIPE, ETIMEDOUT}) {
      for (const int nth : {0, 1, 3}) {
        SCOPED_TRACE(std::string(name_of(GetParam())) + " " + std::to_string(nth) + " " + std::strerror(fault));
        outcomes seen;
        if (!run(nth, fault, workers, seen)) continue;
        if (seen.code.load() != 0 && seen.code.load() != fault) {
          // The other side of a connection that ended.
          EXPECT_TRUE(seen.code.load() == ECONNRESET || seen.code.load() == EPIPE || seen.code.load() == ECONNREFUSED || seen.code.load() == ENOTCONN)
              << std::strerror(seen.code.load());
        }
        // What is tried again, or asked for once more, is no error.
        const bool goes_on = fault == EINTR || fault == EAGAIN;
        const bool transfers = GetParam() == call::accept || GetParam() == call::receive || GetParam() == call::send ||
                               GetParam() == call::read || GetParam() == call::write;
        if (transfers && goes_on) {
          EXPECT_EQ(seen.refused.load(), 0);
        }
        if (transfers && !goes_on) {
          EXPECT_NE(seen.refused.load(), 0);
        }
      }
    }
  }
}

TEST_P(io_faults, short_transfers_are_gone_on_with) {
  for (const int fault : {short_transfer, one_byte_transfers}) {
    outcomes seen;
    const call kind = GetParam();
    if (kind != call::receive && kind != call::send && kind != call::read && kind != call::write) continue;
    EXPECT_TRUE(run(0, fault, 1, seen));
    EXPECT_EQ(seen.refused.load(), 0);
    EXPECT_EQ(seen.fine.load(), 4);
  }
}

INSTANTIATE_TEST_SUITE_P(calls, io_faults, ::testing::ValuesIn(all_calls),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace troupe::test
