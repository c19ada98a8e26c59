// A server for scrape.py: its page and numbers, beside a handler that counts. Prints its port, and
// runs until its standard input ends.
#include <chrono>
#include <iostream>
#include <thread>
#include <troupe/http/server.hpp>
#include <troupe/observe_page/observe_page.hpp>
#include <troupe/troupe.hpp>

using namespace std::chrono_literals;

struct Quick {
  long sum = 0;
  void add(int n) { sum += n; }
};

int main() {
  troupe::http::router routes;
  troupe::add_observe_page(routes);
  troupe::runtime_options options;
  options.observe = true;
  troupe::runtime rt(options);
  troupe::http::server web(std::move(routes));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::cout << listener.local().port() << std::endl;
  const auto quick = rt.spawn<Quick>();
  auto ticks = rt.every(10ms, [=] { quick.tell<&Quick::add>(1); });
  std::thread ends([&, held = rt.hold()] {
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
    ticks.cancel();
    web.stop();
  });
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
  ends.join();
}
