// Our echo server: one task for each connection, on one worker.
#include <sys/resource.h>

#include <cstdio>

#include "troupe/troupe.hpp"

namespace {

troupe::task<> echo(troupe::tcp_stream peer) {
  for (;;) {
    const troupe::io_buffer came = co_await peer.read_some();
    if (came.empty()) break;
    co_await peer.write_all(came);
  }
}

troupe::task<> serve(troupe::runtime& rt) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::printf("%d\n", listener.local().port());
  std::fflush(stdout);
  for (;;) {
    troupe::tcp_stream peer = co_await listener.accept();
    rt.spawn(echo(std::move(peer)));
  }
}

}  // namespace

int main() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  troupe::runtime rt({.workers = 1});
  rt.spawn(serve(rt));
  rt.run();
}
