// when_all takes the future away, so it must be moved in.
// expect: troupe: when_all and when_any: they take a task, a future or a vector of them away: give it with std::move
#include <troupe/troupe.hpp>

troupe::task<> use(troupe::future<int> one, troupe::future<int> two) {
#ifdef CONTROL
  co_await troupe::when_all(std::move(one), std::move(two));
#else
  co_await troupe::when_all(one, std::move(two));
#endif
}
