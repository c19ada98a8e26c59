// The benchmarks in CAF, the C++ Actor Framework. ../../README.md says what each measures.
#include <vector>

#include "asks.hpp"
#include "crowds.hpp"
#include "streams.hpp"

namespace caf_bench {
namespace {

// ---- idle_cpu: a runtime with one actor and nothing to do ----

caf::behavior echo(caf::event_based_actor*) {
  return {[](report_atom) { return caf::make_message(done_atom::value, uint64_t{1}); }};
}

result idle_cpu(unsigned workers, uint64_t seconds) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor actor = system.spawn(echo);
  self->send(actor, report_atom::value);
  receive_sum(self, 1);
  measure::sleep_ms(500);  // lets workers that spin before they sleep go to sleep
  const std::int64_t start = measure::now_ns();
  const std::int64_t cpu_start = measure::process_cpu_ns();
  measure::sleep_ms(static_cast<std::int64_t>(seconds) * 1'000);
  const auto cpu = static_cast<double>(measure::process_cpu_ns() - cpu_start);
  result r;
  r.value = cpu / static_cast<double>(measure::now_ns() - start) * 1e3;
  self->send(actor, report_atom::value);
  r.check = receive_sum(self, 1);
  return r;
}

// ---- wake_latency: a thread outside wakes an idle runtime ----

struct listener_state {
  std::vector<std::int64_t> latencies_ns;
};

caf::behavior listener(caf::stateful_actor<listener_state>* self, uint64_t posts, caf::actor main) {
  self->state.latencies_ns.reserve(posts);
  return {[=](std::int64_t posted_at) {
    auto& latencies = self->state.latencies_ns;
    latencies.push_back(measure::now_ns() - posted_at);
    if (latencies.size() == posts) self->send(main, done_atom::value, std::move(latencies));
  }};
}

result wake_latency(unsigned workers, uint64_t posts) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor actor = system.spawn(listener, posts, caf::actor{self});
  measure::pin_this_thread(1);  // the workers have the mask they inherited: CPU 0
  for (uint64_t i = 0; i < posts; ++i) {
    measure::sleep_ms(1);
    caf::anon_send(actor, measure::now_ns());
  }
  result r;
  self->receive([&](done_atom, std::vector<std::int64_t>& latencies_ns) {
    r = measure::latency_result(std::move(latencies_ns));
  });
  return r;
}

}  // namespace
}  // namespace caf_bench

int main(int argc, char** argv) {
  using namespace caf_bench;
  static constexpr measure::entry table[] = {
      {"ping_pong", 2'000'000, ping_pong},
      {"counting", 10'000'000, counting},
      {"fork_join_throughput", 100'000, fork_join_throughput},
      {"fork_join_create", 1'000'000, fork_join_create},
      {"thread_ring_100", 2'000'003, thread_ring<100>},
      {"thread_ring_10000", 2'000'003, thread_ring<10'000>},
      {"big", 20'000, big},
      {"chameneos", 1'000'000, chameneos},
      {"idle_memory", 5'000'000, idle_memory},
      {"idle_cpu", 10, idle_cpu},
      {"wake_latency", 2'000, wake_latency},
      {"ask", 2'000'000, ask},
  };
  measure::run_program(argc, argv, table);
}
