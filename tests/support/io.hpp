// What the I/O tests share. Each runs under each policy and each backend.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "io/reactor/make_reactor.hpp"
#include "support/conformance.hpp"
#include "support/open_files.hpp"
#include "task/timers/timers.hpp"

namespace troupe::test {

struct io_setting {
  setting on;
  io_backend by = io_backend::epoll;
  unsigned shards = 0;  // of the reactor, and wheels of the timers; 0: as many as the pool needs
};

inline const char* name_of(io_backend one) {
  switch (one) {
    case io_backend::automatic:
      return "auto";
    case io_backend::io_uring:
      return "io_uring";
    case io_backend::epoll:
      return "epoll";
    case io_backend::simulated:
      return "simulated";
  }
  return "unknown";
}
inline std::string name_of(const io_setting& tested) {
  if (tested.by == io_backend::simulated) return name_of(tested.on);
  return name_of(tested.on) + "_" + name_of(tested.by) +
         (tested.shards == 0 ? "" : "_" + std::to_string(tested.shards) + "_shards");
}
inline std::ostream& operator<<(std::ostream& out, const io_setting& one) {
  return out << name_of(one);
}

inline std::vector<io_setting> all_io_settings() {
  std::vector<io_setting> all;
  for (const io_backend by : {io_backend::epoll, io_backend::io_uring}) {
    for (const unsigned workers : {1u, 2u, 8u})
      all.push_back({{policy::work_stealing, workers, 1}, by});
    all.push_back({{policy::shared_queue, 2, 1}, by});
    all.push_back({{policy::one_thread, 1, 1}, by});
  }
  all.push_back({{policy::work_stealing, 4, 1}, io_backend::epoll, 4});
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u})
    all.push_back({{policy::simulated, 1, seed}, io_backend::simulated});
  return all;
}

// The reactors that are made from now on have the setting's shards, and the timers as many wheels.
inline runtime_options options_for(const io_setting& tested) {
  io::set_shards(tested.shards);
  tasks::timers::set_wheels(tested.shards);
  runtime_options chosen;
  chosen.workers = tested.on.workers;
  chosen.policy = tested.on.policy;
  chosen.seed = tested.on.seed;
  chosen.io = tested.by;
  return chosen;
}

class io_conformance : public testing::TestWithParam<io_setting> {
 protected:
  void SetUp() override { skip_other_policies(GetParam().on.policy); }
  runtime_options options() const { return options_for(GetParam()); }
  bool threaded() const { return GetParam().on.policy != policy::simulated; }
  // Checks that all descriptors are closed afterwards.
  void run(task<> what) const {
    const int before = open_files();
    {
      runtime rt(options());
      rt.spawn(std::move(what));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }
};

// Sends back what comes, up to the end of the connection.
inline task<> echo(tcp_stream peer) {
  std::array<char, 1000> buffer;
  for (;;) {
    const std::size_t bytes = co_await peer.read(buffer);
    if (bytes == 0) break;
    co_await peer.write_all(std::string_view(buffer.data(), bytes));
  }
}

inline task<> serve(runtime& rt, tcp_listener listener, int connections) {
  for (int i = 0; i < connections; ++i) {
    tcp_stream peer = co_await listener.accept();
    rt.spawn(echo(std::move(peer)));
  }
}

}  // namespace troupe::test

#define TROUPE_IO_TEST_EACH(suite)                                             \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      backends, suite, ::testing::ValuesIn(::troupe::test::all_io_settings()), \
      [](const auto& parameter) { return ::troupe::test::name_of(parameter.param); })
