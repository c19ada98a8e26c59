// An execution context of Asio with threads of its own, for tests of the component.
#pragma once

// Debian's Asio does not see that clang has coroutines.
#if defined(__clang__)
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#endif
#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>

#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "troupe/asio.hpp"

namespace troupe::test {

class io_threads {
 public:
  explicit io_threads(int threads = 1) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { io.run(); });
  }
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;
  ~io_threads() {
    work_.reset();
    for (std::thread& each : threads_) each.join();
  }
  bool runs_here() const {
    for (const std::thread& each : threads_) {
      if (each.get_id() == std::this_thread::get_id()) return true;
    }
    return false;
  }
  asio::io_context io;

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io);
  std::vector<std::thread> threads_;
};

struct socket_pair {
  explicit socket_pair(asio::io_context& io) : near(io), far(io) {
    asio::local::connect_pair(near, far);
  }
  asio::local::stream_protocol::socket near, far;
};

}  // namespace troupe::test
