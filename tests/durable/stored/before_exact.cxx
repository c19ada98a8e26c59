// Writes `before_exact.db`, with the library as it was before shapes had all names
// (docs/protocols/identity.md). It is here to be read, and no test runs it.
#include <cstdlib>
#include <string>

#include "before_exact.hpp"
#include "troupe/durable/sqlite_storage.hpp"

troupe::task<> write(troupe::runtime& rt, std::string target) {
  auto storage = troupe::durable::sqlite_storage(rt, target);
  auto opens = unclear::open<unclear::bill>(rt, std::move(storage));
  const troupe::durable::store store = co_await std::move(opens);
  co_await store.get<unclear::bill>("b").ask<&unclear::bill::pay>(7);
  std::_Exit(0);
}

int main(int, char** argv) {
  troupe::runtime rt;
  rt.spawn(write(rt, argv[1]));
  rt.run();
}
