// plain: a plain actor for the row cluster/local.
#include <cstdint>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace {

struct Echo {
  std::uint64_t taken = 0;
  std::uint64_t plain(std::uint64_t n) { return taken += n; }
};

troupe::task<measure::result> ask(troupe::ref<Echo> echo, std::uint64_t count) {
  measure::result r;
  const measure::stopwatch watch;
  for (std::uint64_t i = 0; i < count; ++i) r.check = co_await echo.ask<&Echo::plain>(1u);
  r.value = watch.ns_per(count);
  co_return r;
}

measure::result local(unsigned workers, std::uint64_t size) {
  troupe::runtime_options chosen;
  chosen.workers = workers;
  troupe::runtime rt(chosen);
  auto done = rt.spawn(ask(rt.spawn<Echo>(), size));
  rt.run();
  return done.get();
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {{"cluster_local", 2'000'000, local}};
  measure::run_program(argc, argv, table);
}
