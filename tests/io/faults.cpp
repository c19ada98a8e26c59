// The fault table: every system call, or the entry of an io_uring in its place, fails once with
// every error, at its first call and at a later one. Each time the program ends, the caller that
// was refused gets a typed error, and nothing is left behind.
#include <cstring>

#include "support/counted.hpp"
#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr auto far = 10s;  // a wait that takes this long hangs
constexpr std::size_t bytes_each_way = 3'000;

struct outcomes {
  std::atomic<int> fine{0}, refused{0}, hung{0};
  std::atomic<int> code{0};
  std::stop_source end;  // ends the other side when one side has failed
};

// Runs one part of the conversation, and notes how it ends.
template <class Part>
task<> watched(Part part, outcomes& seen) {
  const counted alive;
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

// The same with leased buffers, and with connections that may be accepted ahead.
task<> serve_leased(tcp_listener listener, std::stop_token end) {
  tcp_stream peer = co_await listener.accept().timeout(far).stop(end);
  std::string all;
  while (all.size() < bytes_each_way) {
    const io_buffer came = co_await peer.read_some().timeout(far).stop(end);
    if (came.empty()) break;
    all += came.text();
  }
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

task<> converse(runtime& rt, outcomes& seen, bool leased) {
  tcp_listener listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  auto serving = [&listener, &seen, leased] {
    return leased ? serve_leased(std::move(listener), seen.end.get_token())
                  : serve(std::move(listener), seen.end.get_token());
  };
  auto asking = [at, &seen] { return ask(at, seen.end.get_token()); };
  rt.spawn(watched(std::move(asking), seen));
  auto piping = [&seen] { return through_a_pipe(seen.end.get_token()); };
  rt.spawn(watched(std::move(piping), seen));
  co_await watched(std::move(serving), seen);
}

struct faulty_call {
  call kind;
  io_backend by;
};
std::vector<faulty_call> on_each_backend() {
  std::vector<faulty_call> all;
  for (const io_backend by : {io_backend::epoll, io_backend::io_uring}) {
    for (const call kind : all_calls) {
      const bool of_epoll = kind == call::make_set || kind == call::add ||
                            kind == call::wait_events || kind == call::make_bell;
      const bool of_rings =
          kind == call::poll || kind == call::make_ring || kind == call::enter_ring;
      if (by == io_backend::epoll ? !of_rings : !of_epoll) all.push_back({kind, by});
    }
  }
  return all;
}

class io_faults : public testing::TestWithParam<faulty_call> {
 protected:
  // Runs the conversation with `fault` as the result of the nth call of this kind. Returns false if
  // there was no such call.
  bool run(int nth, int fault, unsigned workers, bool leased, outcomes& seen) {
    const int before = open_files();
    faulty_kernel faulty(GetParam().kind, nth, fault);
    {
      const io::replaced_kernel replaced(faulty);
      runtime rt({.workers = workers, .io = GetParam().by});
      auto whole = [&rt, &seen, leased] { return converse(rt, seen, leased); };
      rt.spawn(watched(std::move(whole), seen));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
    EXPECT_EQ(live.load(), 0);
    EXPECT_EQ(seen.hung.load(), 0);
    return faulty.failed();
  }
};

TEST_P(io_faults, each_error_is_typed_and_nothing_is_left) {
  const call kind = GetParam().kind;
  for (const unsigned workers : {1u, 2u}) {
    for (const int fault :
         {EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNRESET, EPIPE, ETIMEDOUT}) {
      for (const int nth : {0, 1, 3}) {
        const bool leased = nth == 1 || workers == 2;
        SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(nth) + " " +
                     std::strerror(fault));
        outcomes seen;
        if (!run(nth, fault, workers, leased, seen)) {
          EXPECT_NE(nth, 0) << "there was no such call";
          continue;
        }
        if (seen.code.load() != 0 && seen.code.load() != fault) {
          // The other side sees a connection that ended.
          EXPECT_TRUE(seen.code.load() == ECONNRESET || seen.code.load() == EPIPE ||
                      seen.code.load() == ECONNREFUSED || seen.code.load() == ENOTCONN)
              << std::strerror(seen.code.load());
        }
        // An operation that is tried again, or asked for once more, is no error; nor is a ring that
        // has no buffer at the moment.
        const bool no_buffer = fault == ENOBUFS && leased && kind == call::receive &&
                               GetParam().by == io_backend::io_uring;
        if (no_buffer) continue;
        const bool goes_on = fault == EINTR || fault == EAGAIN;
        const bool transfers = kind == call::accept || kind == call::receive ||
                               kind == call::send || kind == call::read || kind == call::write ||
                               kind == call::poll;
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

// An error of the connection that would have been accepted is no error of the listener.
TEST_P(io_faults, a_peer_that_has_gone_does_not_end_who_accepts) {
  if (GetParam().kind != call::accept) return;
  for (const int fault : {ECONNABORTED, EPROTO, ENETDOWN, EHOSTUNREACH, ENETUNREACH}) {
    for (const bool leased : {false, true}) {
      SCOPED_TRACE(std::strerror(fault));
      outcomes seen;
      EXPECT_TRUE(run(0, fault, 1, leased, seen));
      EXPECT_EQ(seen.refused.load(), 0);
    }
  }
}

TEST_P(io_faults, short_transfers_are_gone_on_with) {
  for (const int fault : {short_transfer, one_byte_transfers}) {
    const call kind = GetParam().kind;
    if (kind != call::receive && kind != call::send && kind != call::read && kind != call::write)
      continue;
    for (const bool leased : {false, true}) {
      outcomes seen;
      EXPECT_TRUE(run(0, fault, 1, leased, seen));
      EXPECT_EQ(seen.refused.load(), 0);
      EXPECT_EQ(seen.fine.load(), 4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(calls, io_faults, ::testing::ValuesIn(on_each_backend()),
                         [](const auto& one) {
                           return std::string(name_of(one.param.kind)) + "_" +
                                  name_of(one.param.by);
                         });

}  // namespace
}  // namespace troupe::test
