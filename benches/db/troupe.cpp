// db: our contestant for the rows db/*: 64 tasks, each of which waits for its answer; and for the
// rows durable/*.
#include <string>
#include <vector>

#include "../measure.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/postgres/connection.hpp"
#include "troupe/sqlite/connection.hpp"
#include "troupe/troupe.hpp"
#include "work.hpp"

namespace {

using troupe::future;
using troupe::task;

template <class Store>
task<> find_some(Store store, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i) {
    const int id = db_work::id_of(i);
    const auto found = co_await store.template query_one<int>(db_work::find_text, id);
    if (found != id) std::abort();
  }
}

template <class Store>
task<> add_some(Store store, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i)
    co_await store.execute(db_work::add_text, i, db_work::line);
}

template <class Store, class Some>
measure::result run(troupe::runtime& rt, Store store, const char* tables, std::uint64_t size,
                    Some some) {
  future<> filled = rt.spawn(store.run_script(tables));
  rt.run();
  filled.get();
  const std::uint64_t each = size / db_work::in_flight;
  measure::result r;
  const measure::stopwatch watch;
  std::vector<future<>> all;
  for (int i = 0; i < db_work::in_flight; ++i)
    all.push_back(rt.spawn(some(store, static_cast<std::uint64_t>(i) * each, each)));
  rt.run();
  for (auto& one : all) one.get();
  r.value = watch.ns_per(each * db_work::in_flight);
  r.check = each * db_work::in_flight;
  return r;
}

troupe::runtime_options with(unsigned workers) {
  troupe::runtime_options chosen;
  chosen.workers = workers;
  return chosen;
}

measure::result sqlite_query(unsigned workers, std::uint64_t size) {
  troupe::runtime rt(with(workers));
  const troupe::sqlite::connection db(rt, db_work::new_file());
  return run(rt, db, db_work::sqlite_tables, size, find_some<troupe::sqlite::connection>);
}
measure::result sqlite_insert(unsigned workers, std::uint64_t size) {
  troupe::runtime rt(with(workers));
  const troupe::sqlite::connection db(rt, db_work::new_file());
  return run(rt, db, db_work::sqlite_tables, size, add_some<troupe::sqlite::connection>);
}
measure::result postgres_query(unsigned workers, std::uint64_t size) {
  troupe::runtime rt(with(workers));
  const troupe::postgres::connection db(rt, db_work::postgres_target());
  return run(rt, db, db_work::postgres_tables, size, find_some<troupe::postgres::connection>);
}

// ---- durable actors ----

struct Counter {
  std::int64_t sum = 0;
  std::int64_t add(std::int64_t by) { return sum += by; }
};

task<troupe::durable::store> open_store(troupe::runtime& rt, troupe::durable::options chosen) {
  auto file = troupe::durable::sqlite_storage(rt, db_work::new_file());
  return troupe::durable::store::open(rt, std::move(file), chosen,
                                      troupe::durable::kind<Counter, &Counter::add>());
}

// Rounds of one message to each actor, none of which waits for another's answer.
task<> add_to_all(troupe::durable::store store, std::uint64_t first, std::uint64_t actors,
                  std::uint64_t rounds) {
  std::vector<troupe::durable::ref<Counter>> all;
  for (std::uint64_t i = 0; i < actors; ++i)
    all.push_back(store.get<Counter>("actor " + std::to_string(first + i)));
  std::vector<future<std::int64_t>> answers;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (const auto& one : all) answers.push_back(one.ask<&Counter::add>(1));
    for (auto& one : answers) {
      if (co_await std::move(one) != static_cast<std::int64_t>(round)) std::abort();
    }
    answers.clear();
  }
}

measure::result durable_turns(unsigned workers, std::uint64_t size) {
  troupe::runtime rt(with(workers));
  measure::result r;
  const auto work = [&rt, &r, size]() -> task<> {
    auto opens = open_store(rt, {});
    const troupe::durable::store store = co_await std::move(opens);
    const measure::stopwatch watch;
    auto adds = add_to_all(store, 0, db_work::durable_actors, size / db_work::durable_actors);
    co_await std::move(adds);
    r.check = store.counts().turns;
    r.value = watch.ns_per(r.check);
  };
  future<> done = rt.spawn(work());
  rt.run();
  done.get();
  return r;
}

// Bytes of memory that the process has grown by after so many actors, of which 10,000 may be in
// memory at a time.
measure::result durable_idle(unsigned workers, std::uint64_t size) {
  troupe::runtime rt(with(workers));
  measure::result r;
  const auto work = [&rt, &r, size]() -> task<> {
    troupe::durable::options chosen;
    chosen.actors_max = db_work::durable_actors;
    auto opens = open_store(rt, chosen);
    const troupe::durable::store store = co_await std::move(opens);
    const std::int64_t before = measure::resident_bytes();
    for (std::uint64_t first = 0; first < size; first += 1'000) {
      auto adds = add_to_all(store, first, 1'000, 1);
      co_await std::move(adds);
    }
    r.check = store.counts().turns;
    r.value = static_cast<double>(measure::resident_bytes() - before) / 1e6;
  };
  future<> done = rt.spawn(work());
  rt.run();
  done.get();
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"sqlite_query", 640'000, sqlite_query},     {"sqlite_insert", 64'000, sqlite_insert},
      {"postgres_query", 192'000, postgres_query}, {"durable_turns", 400'000, durable_turns},
      {"durable_idle", 1'000'000, durable_idle},
  };
  measure::run_program(argc, argv, table);
}
