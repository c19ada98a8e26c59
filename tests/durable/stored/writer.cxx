// Writes the stores that are kept here: `before_identity.db`, a SQLite file, and
// `before_identity.sql`, what `pg_dump --inserts --no-owner` says of a PostgreSQL database. It was
// compiled with the library as it was before ids, classes and keys had their identity
// (docs/protocols/identity.md); it is here to be read, and no test runs it. Afterwards the times of
// the answer and of the reminder `often` were set to the year 2100, so that neither is due.
#include <cstdlib>
#include <string>

#include "classes.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable_postgres/postgres_storage.hpp"

namespace durable = troupe::durable;

troupe::task<> write(troupe::runtime& rt, std::string target) {
  auto place = target.starts_with("postgresql:") ? durable::postgres_storage(rt, target)
                                                 : durable::sqlite_storage(rt, target);
  auto opens = kept::open(rt, std::move(place));
  const durable::store store = co_await std::move(opens);
  const auto ada = store.get<kept::account>("ada");
  co_await ada.ask<&kept::account::deposit>(100);
  co_await ada.with_id(durable::message_id::of("order 17")).ask<&kept::account::deposit>(10);
  co_await ada.ask<&kept::account::paint>(kept::colour::blue);
  co_await ada.ask<&kept::account::remind>();
  co_await ada.post<&kept::account::refuse>();
  for (int i = 1; i <= 6; ++i) co_await store.get<kept::counter>("c").ask<&kept::counter::move>(i);
  const auto holder = store.get<kept::holder>("h");
  co_await holder.with_id(durable::message_id::of("order 18")).post<&kept::holder::hold>(5);
  co_await holder.post<&kept::holder::hold>(1);
  co_await ada.ask<&kept::account::look>();
  std::_Exit(0);
}

int main(int, char** argv) {
  troupe::runtime rt;
  rt.spawn(write(rt, argv[1]));
  rt.run();
}
