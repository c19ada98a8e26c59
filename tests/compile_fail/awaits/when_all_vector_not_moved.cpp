// when_all takes the vector of futures away, so it must be moved in.
// expect: troupe: when_all: it takes the vector away: when_all(std::move(the_vector))
#include <vector>

#include <troupe/troupe.hpp>

troupe::task<> use(std::vector<troupe::future<int>> all) {
#ifdef CONTROL
  co_await troupe::when_all(std::move(all));
#else
  co_await troupe::when_all(all);
#endif
}
