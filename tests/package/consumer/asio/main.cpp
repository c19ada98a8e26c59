// A program of a user of the component asio: it prints 42, which a timer of Asio has given.
#include <asio.hpp>

#include <chrono>
#include <cstdio>

#include <troupe/asio.hpp>
#include <troupe/troupe.hpp>

int main() {
  troupe::runtime rt;
  rt.spawn(
      [](troupe::asio_executor on) -> troupe::task<> {
        asio::steady_timer timer(on, std::chrono::milliseconds(1));
        co_await timer.async_wait(troupe::asio_token);
        std::printf("42\n");
      },
      troupe::asio_executor(rt));
  rt.run();
}
