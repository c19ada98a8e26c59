// cluster: our contestant for the rows cluster/*: two nodes in one program, over servers that the
// driver has started; and one that is alone.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "../measure.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/troupe.hpp"

namespace {

using troupe::future;
using troupe::task;
using troupe::cluster::node;
using namespace std::chrono_literals;

const std::string line = "some text of 32 bytes, as it is.";

struct Echo {
  std::uint64_t taken = 0;
  std::string give(std::string text) { return text; }
  void take(std::string) { ++taken; }
  std::uint64_t count() const { return taken; }
  std::uint64_t plain(std::uint64_t n) { return taken += n; }
};
auto kinds() {
  return troupe::cluster::kind<Echo, &Echo::give, &Echo::take, &Echo::count, &Echo::plain>();
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) std::abort();
  return value;
}

node join(troupe::runtime& on, std::string name) {
  troupe::cluster::options chosen;
  chosen.nats = variable("BENCH_NATS");
  chosen.database = variable("BENCH_POSTGRES");
  chosen.name = std::move(name);
  chosen.waiting_max = 4'000'000;
  return node(on, std::move(chosen), kinds());
}

struct two_nodes {
  explicit two_nodes(troupe::runtime& on) : here(join(on, "here")), there(join(on, "there")) {}
  task<> ready() {
    auto one = here.ready();
    co_await std::move(one);
    auto other = there.ready();
    co_await std::move(other);
    while (here.counts().shards != 512 || there.counts().shards != 512)
      co_await troupe::sleep_for(10ms);
  }
  // An actor that is on the other node.
  task<troupe::cluster::ref<Echo>> far() {
    for (int i = 0;; ++i) {
      auto one = here.get<Echo>(std::to_string(i));
      const auto before = there.counts().created;
      auto asked = one.ask<&Echo::count>();
      static_cast<void>(co_await std::move(asked));
      if (there.counts().created != before) co_return one;
    }
  }
  task<> stop() {
    auto one = here.stop();
    co_await std::move(one);
    auto other = there.stop();
    co_await std::move(other);
  }
  node here, there;
};

task<measure::result> ask_far(troupe::runtime& on, std::uint64_t count) {
  two_nodes both(on);
  auto joins = both.ready();
  co_await std::move(joins);
  auto finds = both.far();
  const auto echo = co_await std::move(finds);
  measure::result r;
  const measure::stopwatch watch;
  for (; r.check < count; ++r.check) {
    const std::string got = co_await echo.ask<&Echo::give>(line);
    if (got != line) std::abort();
  }
  r.value = watch.ns_per(count);
  auto stops = both.stop();
  co_await std::move(stops);
  co_return r;
}

task<measure::result> tell_far(troupe::runtime& on, std::uint64_t count) {
  two_nodes both(on);
  auto joins = both.ready();
  co_await std::move(joins);
  auto finds = both.far();
  const auto echo = co_await std::move(finds);
  measure::result r;
  const measure::stopwatch watch;
  for (std::uint64_t i = 0; i < count; ++i) {
    echo.tell<&Echo::take>(line);
    if (i % 256 == 0) co_await troupe::yield();
  }
  while (r.check != count) {
    r.check = co_await echo.ask<&Echo::count>();
  }
  r.value = watch.ns_per(count);
  auto stops = both.stop();
  co_await std::move(stops);
  co_return r;
}

task<measure::result> activate_far(troupe::runtime& on, std::uint64_t count) {
  two_nodes both(on);
  auto joins = both.ready();
  co_await std::move(joins);
  measure::result r;
  const measure::stopwatch watch;
  for (; r.check < count; ++r.check)
    static_cast<void>(co_await both.here.get<Echo>(std::to_string(r.check)).ask<&Echo::count>());
  r.value = watch.ns_per(count);
  auto stops = both.stop();
  co_await std::move(stops);
  co_return r;
}

task<measure::result> ask_here(troupe::runtime& on, std::uint64_t count) {
  const node alone(on, {}, kinds());
  auto joins = alone.ready();
  co_await std::move(joins);
  const auto echo = alone.get<Echo>("one");
  measure::result r;
  const measure::stopwatch watch;
  for (std::uint64_t i = 0; i < count; ++i) r.check = co_await echo.ask<&Echo::plain>(1u);
  r.value = watch.ns_per(count);
  auto stops = alone.stop();
  co_await std::move(stops);
  co_return r;
}

template <auto What>
measure::result run(unsigned workers, std::uint64_t size) {
  troupe::runtime_options chosen;
  chosen.workers = workers;
  troupe::runtime rt(chosen);
  future<measure::result> done = rt.spawn(What(rt, size));
  rt.run();
  return done.get();
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"cluster_ask", 20'000, run<ask_far>},
      {"cluster_tell", 1'000'000, run<tell_far>},
      {"cluster_activate", 20'000, run<activate_far>},
      {"cluster_local", 2'000'000, run<ask_here>},
  };
  measure::run_program(argc, argv, table);
}
