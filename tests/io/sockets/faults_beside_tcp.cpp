// The fault table for datagrams and for Unix sockets: each system call fails with each error, the
// caller that was refused gets a typed error, and nothing is left behind.
#include <cstring>

#include "support/counted.hpp"
#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr auto far = 10s;        // a wait that takes this long hangs
constexpr auto patience = 60ms;  // how long to wait for a datagram that may be lost
// Sent one by one, such datagrams stay within the quarter of the space for which the system reports
// "writable".
constexpr std::size_t bytes_by_path = 40;

struct outcomes {
  std::atomic<int> fine{0}, refused{0}, late{0};
};

// Runs one part of the conversation, and notes how it ends.
template <class Part>
task<> watched(Part part, outcomes& seen) {
  const counted alive;
  try {
    co_await part();
    ++seen.fine;
  } catch (const io_error&) {
    ++seen.refused;
  } catch (const end_of_stream&) {
    ++seen.refused;
  } catch (const timed_out&) {
    ++seen.late;
  }
}

// A receive does not wait long, since its datagram may not have been sent.
task<> datagrams() {
  auto here = udp_socket::bind(endpoint::loopback(0));
  auto peer = udp_socket::connect(here.local());
  std::array<char, 16> buffer;
  for (int i = 0; i < 4; ++i) {
    co_await peer.send("to you").timeout(far);
    const datagram came = co_await here.receive(buffer).timeout(patience);
    EXPECT_EQ(std::string_view(buffer.data(), came.bytes),
              std::string_view("to you").substr(0, came.bytes));
    co_await here.send("back", came.from).timeout(far);
    co_await peer.receive(buffer).timeout(patience);
  }
}

task<> by_path(std::string path) {
  auto listener = unix_listener::listen(path);
  unix_stream near = unix_stream::connect(path);
  unix_stream distant = co_await listener.accept().timeout(far);
  std::string all(bytes_by_path, '\0');
  co_await near.write_all(std::string(bytes_by_path, 'u')).timeout(far);
  near.shutdown_write();
  co_await distant.read_exact(all).timeout(far);
  EXPECT_EQ(all, std::string(bytes_by_path, 'u'));
  std::array<char, 1> none;
  const std::size_t more = co_await distant.read(none).timeout(far);
  EXPECT_EQ(more, 0u);
}

struct faulty_call {
  call kind;
  io_backend by;
};

class io_faults_beside_tcp : public testing::TestWithParam<faulty_call> {
 protected:
  bool run(int nth, int fault, outcomes& seen) {
    const int before = open_files();
    const scratch folder;
    faulty_kernel faulty(GetParam().kind, nth, fault);
    {
      const io::replaced_kernel replaced(faulty);
      runtime rt({.workers = 1, .io = GetParam().by});
      auto first = [] { return datagrams(); };
      rt.spawn(watched(std::move(first), seen));
      auto second = [path = folder / "socket"] { return by_path(path); };
      rt.spawn(watched(std::move(second), seen));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
    EXPECT_EQ(live.load(), 0);
    return faulty.failed();
  }
};

TEST_P(io_faults_beside_tcp, each_error_is_typed_and_nothing_is_left) {
  const call kind = GetParam().kind;
  for (const int fault :
       {EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNRESET, EPIPE, ETIMEDOUT}) {
    for (const int nth : {0, 1, 2, 5}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(nth) + " " +
                   std::strerror(fault));
      outcomes seen;
      if (!run(nth, fault, seen)) {
        EXPECT_NE(nth, 0) << "there was no such call";
        continue;
      }
      EXPECT_EQ(seen.late.load(), 0);
      EXPECT_EQ(seen.fine.load() + seen.refused.load(), 2);
      const bool transfers = kind == call::accept || kind == call::receive || kind == call::send;
      const bool goes_on = fault == EINTR || fault == EAGAIN;
      if (transfers) {
        EXPECT_EQ(seen.refused.load(), goes_on ? 0 : 1);
      }
    }
  }
}

TEST_P(io_faults_beside_tcp, short_transfers_of_streams_are_gone_on_with) {
  if (GetParam().kind != call::receive && GetParam().kind != call::send) return;
  for (const int fault : {short_transfer, one_byte_transfers}) {
    outcomes seen;
    const int before = open_files();
    const scratch folder;
    faulty_kernel faulty(GetParam().kind, 0, fault);
    {
      const io::replaced_kernel replaced(faulty);
      runtime rt({.workers = 1, .io = GetParam().by});
      auto part = [path = folder / "socket"] { return by_path(path); };
      rt.spawn(watched(std::move(part), seen));
      rt.run();
    }
    EXPECT_TRUE(faulty.failed());
    EXPECT_EQ(seen.fine.load(), 1);
    EXPECT_EQ(open_files(), before);
  }
}

std::vector<faulty_call> on_each_backend() {
  std::vector<faulty_call> all;
  for (const call kind :
       {call::socket, call::bind, call::listen, call::accept, call::connect, call::shutdown,
        call::close, call::receive, call::send, call::local_name}) {
    all.push_back({kind, io_backend::epoll});
    all.push_back({kind, io_backend::io_uring});
  }
  all.push_back({call::add, io_backend::epoll});
  all.push_back({call::poll, io_backend::io_uring});
  return all;
}

INSTANTIATE_TEST_SUITE_P(calls, io_faults_beside_tcp, ::testing::ValuesIn(on_each_backend()),
                         [](const auto& one) {
                           return std::string(name_of(one.param.kind)) + "_" +
                                  name_of(one.param.by);
                         });

}  // namespace
}  // namespace troupe::test
