// Writes `before_full.db`, with the library as it was before shapes had the whole names of types
// (docs/protocols/identity.md). It is here to be read, and no test runs it.
#include <cstdlib>
#include <string>

#include "before_full.hpp"
#include "troupe/durable/sqlite_storage.hpp"

troupe::task<> write(troupe::runtime& rt, std::string target) {
  auto storage = troupe::durable::sqlite_storage(rt, target);
  auto opens = grown::open<grown::house, grown::sum>(rt, std::move(storage));
  const troupe::durable::store store = co_await std::move(opens);
  const auto house = store.get<grown::house>("h");
  co_await house.ask<&grown::house::pay>(std::int8_t{7});
  co_await house.ask<&grown::house::set>(grown::door::shut, grown::window::open);
  const auto sum = store.get<grown::sum>("s");
  co_await sum.ask<&grown::sum::add>(50);
  co_await sum.ask<&grown::sum::remove>(8);
  std::_Exit(0);
}

int main(int, char** argv) {
  troupe::runtime rt;
  rt.spawn(write(rt, argv[1]));
  rt.run();
}
