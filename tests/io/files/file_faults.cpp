// The fault table of files: every system call fails with every error, at its first call and at a
// later one. Each time the program ends, the caller that was refused gets a typed error that names
// the file, and no descriptor is left open.
#include <cstring>

#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr auto far = 10s;  // a wait that takes this long hangs
constexpr std::size_t bytes_each_way = 3'000;

struct came_to {
  int fine = 0, code = 0;
  std::string said;
};

task<> drains(pipe_stream from) {
  std::string back(bytes_each_way, '\0');
  try {
    co_await from.read_exact(std::span<char>(back)).timeout(far);
    EXPECT_TRUE(back == std::string(bytes_each_way, 'x'));
  } catch (const end_of_stream&) {
    // The other end was refused an operation.
  }
}

task<> uses_files(std::string path) {
  open_options fresh;
  fresh.write = fresh.create = fresh.truncate = true;
  file both = co_await file::open(path, fresh).timeout(far);
  co_await both.write_all_at(0, std::string(bytes_each_way, 'x')).timeout(far);
  co_await both.fsync().timeout(far);
  const std::uint64_t size = co_await both.size();
  EXPECT_EQ(size, bytes_each_way);
  std::string back(bytes_each_way, '\0');
  co_await both.read_exact_at(0, std::span<char>(back)).timeout(far);
  EXPECT_TRUE(back == std::string(bytes_each_way, 'x'));
  co_await both.read_exact_at(1, std::span<char>(back).first(10)).timeout(far);
  auto ends = pipe_stream::make();
  spawn(drains(std::move(ends.first)));
  co_await ends.second.send_file(both, 0, bytes_each_way).timeout(far);
  co_await both.close().timeout(far);
}

task<> watched(std::string path, came_to& seen) {
  try {
    co_await uses_files(path);
    ++seen.fine;
  } catch (const io_error& e) {
    seen.code = e.code().value();
    seen.said = e.what();
  }
}

struct faulty_call {
  call kind;
  io_backend by;
};

class io_file_faults : public testing::TestWithParam<faulty_call> {
 protected:
  // Returns false if there was no such call.
  bool run(int nth, int fault, came_to& seen) {
    const int before = open_files();
    const std::string path = folder / "text";
    faulty_kernel faulty(GetParam().kind, nth, fault);
    {
      const io::replaced_kernel replaced(faulty);
      runtime rt({.workers = 2, .io = GetParam().by});
      rt.spawn(watched(path, seen));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
    return faulty.failed();
  }
  scratch folder;
};

TEST_P(io_file_faults, each_error_is_typed_and_nothing_is_left) {
  const auto [kind, by] = GetParam();
  for (const int fault :
       {EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC, EIO, EDQUOT, ECONNRESET, EPIPE}) {
    for (const int nth : {0, 1, 3}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(nth) + " " +
                   std::strerror(fault));
      came_to seen;
      if (!run(nth, fault, seen)) {
        EXPECT_NE(nth, 0) << "there was no such call";
        continue;
      }
      // An operation that the ring cannot do at once is given to a thread that may block.
      const bool can_wait =
          kind == call::send_file || kind == call::status || by == io_backend::io_uring;
      const bool goes_on = fault == EINTR || (fault == EAGAIN && can_wait);
      if (kind == call::close) {
        // The errors of closes that no task awaits are not reported: those of the pipe and of the
        // reactor.
        EXPECT_TRUE(seen.fine == 1 || (seen.code == fault && fault != EINTR)) << seen.said;
      } else if (goes_on) {
        EXPECT_EQ(seen.fine, 1) << seen.said;
      } else {
        EXPECT_EQ(seen.code, fault);
        if (kind != call::send_file) {
          EXPECT_NE(seen.said.find(folder / "text"), std::string::npos) << seen.said;
        }
      }
    }
  }
}

TEST_P(io_file_faults, short_transfers_are_gone_on_with) {
  const call kind = GetParam().kind;
  if (kind != call::read_at && kind != call::write_at && kind != call::send_file) return;
  for (const int fault : {short_transfer, one_byte_transfers}) {
    came_to seen;
    EXPECT_TRUE(run(0, fault, seen));
    EXPECT_EQ(seen.fine, 1) << seen.said;
  }
}

std::vector<faulty_call> on_each_backend() {
  std::vector<faulty_call> all;
  for (const call kind : calls_of_files) {
    all.push_back({kind, io_backend::epoll});
    all.push_back({kind, io_backend::io_uring});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(calls, io_file_faults, ::testing::ValuesIn(on_each_backend()),
                         [](const auto& one) {
                           return std::string(name_of(one.param.kind)) + "_" +
                                  name_of(one.param.by);
                         });

}  // namespace
}  // namespace troupe::test
