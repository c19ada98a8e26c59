// Asio's echo server: one coroutine for each connection, on one thread.
#include <sys/resource.h>

#include <array>
#include <asio.hpp>
#include <cstdio>

using asio::ip::tcp;

namespace {

asio::awaitable<void> echo(tcp::socket peer) {
  std::array<char, 4096> buffer;
  try {
    for (;;) {
      const std::size_t bytes =
          co_await peer.async_read_some(asio::buffer(buffer), asio::use_awaitable);
      co_await asio::async_write(peer, asio::buffer(buffer, bytes), asio::use_awaitable);
    }
  } catch (const std::exception&) {
  }
}

asio::awaitable<void> serve() {
  const auto here = co_await asio::this_coro::executor;
  tcp::acceptor acceptor(here, {asio::ip::address_v4::loopback(), 0});
  std::printf("%d\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  for (;;) {
    tcp::socket peer = co_await acceptor.async_accept(asio::use_awaitable);
    peer.set_option(tcp::no_delay(true));
    asio::co_spawn(here, echo(std::move(peer)), asio::detached);
  }
}

}  // namespace

int main() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  asio::io_context context(1);
  asio::co_spawn(context, serve(), asio::detached);
  context.run();
}
