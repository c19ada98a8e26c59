// An operation starts when it is awaited, or by start(): one that is only named does nothing.
// expect: unused variable
#include <utility>

#include <troupe/troupe.hpp>

troupe::task<> use(troupe::tcp_listener& listener) {
  auto connects = troupe::tcp_stream::connect(listener.local());
#ifdef CONTROL
  auto connected = std::move(connects).start();
  troupe::tcp_stream there = co_await std::move(connected);
#endif
  troupe::tcp_stream here = co_await listener.accept();
}
