// A shared object with a runtime in it, as a plugin of a foreign program has one.
#include <troupe/troupe.hpp>

namespace {

struct adder {
  int sum = 0;
  int add(int by) { return sum += by; }
};

struct asker {
  troupe::ref<adder> of;
  troupe::task<int> ask(int count) {
    int last = 0;
    for (int i = 0; i < count; ++i) last = co_await of.ask<&adder::add>(1);
    co_return last;
  }
};

}  // namespace

// Calls `then` while it has a runtime; returns that result.
extern "C" [[gnu::visibility("default")]] int plug_around(int (*then)()) {
  troupe::runtime rt;
  const int result = then();
  rt.run();
  return result;
}

// 0: all went well.
extern "C" [[gnu::visibility("default")]] int plug() {
  troupe::runtime rt;
  auto to = rt.spawn<adder>();
  auto from = rt.spawn<asker>(to);
  auto sum = from.ask<&asker::ask>(1000);
  auto lazy = troupe::lazy([] { return 42; });
  rt.run();
  const bool right = sum.get() == 1000 && lazy.get() == 42;
  return right && !troupe::trace_context::begin().traceparent().empty() ? 0 : 1;
}
