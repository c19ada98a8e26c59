// nats: our contestant for the rows nats/*.
#include <optional>

#include "../measure.hpp"
#include "troupe/nats/connection.hpp"
#include "troupe/troupe.hpp"
#include "work.hpp"

namespace {

using troupe::future;
using troupe::task;
namespace nats = troupe::nats;

troupe::runtime_options with(unsigned workers) {
  troupe::runtime_options chosen;
  chosen.workers = workers;
  return chosen;
}

task<> answer(nats::connection by, nats::subscription from, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto one = co_await from.next();
    co_await by.publish(one->reply, one->payload);
  }
  co_await by.flush();
}

task<measure::result> ask(std::uint64_t count) {
  const nats::connection server = co_await nats::connect(nats_work::server());
  const nats::connection by = co_await nats::connect(nats_work::server());
  auto asked = co_await server.subscribe(nats_work::ask_subject);
  co_await server.flush();
  future<> answers = troupe::spawn(answer(server, std::move(asked), count));
  measure::result r;
  const measure::stopwatch watch;
  for (; r.check < count; ++r.check) {
    const nats::message got = co_await by.request(nats_work::ask_subject, nats_work::line);
    if (got.payload != nats_work::line) std::abort();
  }
  r.value = watch.ns_per(count);
  co_await std::move(answers);
  co_return r;
}

task<std::uint64_t> take(nats::subscription from, std::uint64_t count) {
  std::uint64_t taken = 0;
  for (; taken < count; ++taken) {
    const auto one = co_await from.next();
    if (!one || one->missed > 0) std::abort();
  }
  co_return taken;
}

task<measure::result> send(std::uint64_t count) {
  const nats::connection to = co_await nats::connect(nats_work::server());
  const nats::connection by = co_await nats::connect(nats_work::server());
  nats::subscribe_options all;
  all.messages_max = count;
  all.bytes_max = SIZE_MAX / 2;
  auto sent = co_await to.subscribe(nats_work::send_subject, all);
  co_await to.flush();
  measure::result r;
  const measure::stopwatch watch;
  future<std::uint64_t> takes = troupe::spawn(take(std::move(sent), count));
  for (std::uint64_t i = 0; i < count; ++i)
    co_await by.publish(nats_work::send_subject, nats_work::line);
  r.check = co_await std::move(takes);
  r.value = watch.ns_per(count);
  co_return r;
}

measure::result run(unsigned workers, task<measure::result> what) {
  troupe::runtime rt(with(workers));
  future<measure::result> done = rt.spawn(std::move(what));
  rt.run();
  return done.get();
}
measure::result request(unsigned workers, std::uint64_t size) { return run(workers, ask(size)); }
measure::result publish(unsigned workers, std::uint64_t size) { return run(workers, send(size)); }

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"nats_request", 20'000, request},
      {"nats_publish", 1'000'000, publish},
  };
  measure::run_program(argc, argv, table);
}
