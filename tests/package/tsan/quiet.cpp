// Values go from thread to thread by tells, asks, channels, posted procedures, timers, locks and
// pipes of the library, and all of them are unlocked memory of the program: ThreadSanitizer knows
// from the library alone that nothing races.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

constexpr int rounds = 2000;

struct sums {
  std::vector<long> all = std::vector<long>(1);
  void add(std::unique_ptr<long> number) { all[0] += *number; }
  long total() const { return all[0]; }
};

troupe::task<> ask(troupe::ref<sums> actor, std::shared_ptr<long> asked) {
  for (int i = 0; i < rounds; ++i) *asked += co_await actor.ask<&sums::total>() >= 0 ? 1 : 0;
}

troupe::task<> produce(troupe::channel<std::unique_ptr<long>> numbers) {
  for (int i = 0; i < rounds; ++i) co_await numbers.send(std::make_unique<long>(1));
  numbers.close();
}

troupe::task<> consume(troupe::channel<std::unique_ptr<long>> numbers, troupe::ref<sums> actor) {
  while (auto number = co_await numbers.receive()) actor.tell<&sums::add>(std::move(*number));
}

troupe::task<> write(troupe::pipe_stream out) {
  for (int i = 0; i < rounds; ++i) co_await out.write_all(std::string(16, 'x'));
}

troupe::task<> read(troupe::pipe_stream in, std::shared_ptr<long> bytes) {
  std::array<char, 256> buffer;
  while (const std::size_t got = co_await in.read(buffer)) *bytes += static_cast<long>(got);
}

}  // namespace

int main() {
  const auto asked = std::make_shared<long>();
  const auto bytes = std::make_shared<long>();
  long total = 0;
  {
    troupe::runtime rt({.workers = 4});
    const auto actor = rt.spawn<sums>();
    const auto numbers = troupe::channel<std::unique_ptr<long>>::bounded(4);
    rt.spawn(produce(numbers));
    rt.spawn(consume(numbers, actor));
    rt.spawn(ask(actor, asked));
    auto [in, out] = troupe::pipe_stream::make();
    rt.spawn(write(std::move(out)));
    rt.spawn(read(std::move(in), bytes));
    for (int i = 0; i < rounds; ++i)
      rt.post([actor, number = std::make_unique<long>(1)]() mutable {
        actor.tell<&sums::add>(std::move(number));
      });
    std::thread other([&] {
      for (int i = 0; i < rounds; ++i) actor.tell<&sums::add>(std::make_unique<long>(1));
    });
    rt.after(std::chrono::milliseconds(1), [] {});
    rt.run();
    other.join();
    rt.run();
    actor.tell([&total](sums& self) { total = self.total(); });
    rt.run();
  }
  std::printf("%ld %ld %ld\n", total, *asked, *bytes);
}
