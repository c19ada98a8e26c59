// A program with every side channel. It works until SIGTERM, and says how much it has done.
// Arguments: observe, quit (dumps at SIGQUIT), export (spans, to the collector that the environment
// names), log=FILE.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/io/service/notify.hpp"
#include "troupe/io/signals.hpp"
#include "troupe/log/log.hpp"
#include "troupe/otlp/exporter.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;

struct Counter {
  std::uint64_t sum = 0;
  void add(std::uint64_t n) { sum += n; }
  std::uint64_t total() const { return sum; }
};

// A second of blocking in a side channel would be seen in the time that this takes.
troupe::task<> work_until_signal(troupe::signal_listener signals, troupe::timer ticks,
                                 troupe::ref<Counter> counter) {
  for (std::uint64_t i = 0; i < 10'000; ++i) counter.tell<&Counter::add>(1);
  std::cout << "ready" << std::endl;
  co_await signals.next();
  troupe::service::stopping();
  ticks.cancel();
  std::cout << "worked " << co_await counter.ask<&Counter::total>() << std::endl;
}

troupe::task<> tick(bool logs, std::string text) {
  if (logs) troupe::log::info(text);
  co_await troupe::sleep_for(1ms);
}

}  // namespace

int main(int, char** arguments) {
  troupe::runtime_options options;
  std::optional<troupe::otlp::exporter> spans;
  bool logs = false;
  for (++arguments; *arguments != nullptr; ++arguments) {
    const std::string_view word = *arguments;
    if (word == "observe") options.observe = true;
    if (word == "quit") options.dump_on_sigquit = true;
    if (word == "export") {
      auto chosen = troupe::otlp::exporter_options::from_environment();
      chosen.interval = 50ms;
      chosen.flush_time = 500ms;
      spans.emplace(std::move(chosen));
    }
    if (word.starts_with("log=")) {
      logs = true;
      troupe::log::configure({.file = std::string(word.substr(4))});
    }
  }
  troupe::runtime rt(options);
  auto signals = troupe::signal_listener::listen({SIGTERM});
  const std::string text(500, 'x');
  auto ticks = rt.every(5ms, [&] {
    auto work = tick(logs, text);
    rt.spawn(troupe::with_span("tick", std::move(work)));
  });
  rt.spawn(work_until_signal(std::move(signals), std::move(ticks), rt.spawn<Counter>()));
  troupe::service::ready();
  rt.run();
}
