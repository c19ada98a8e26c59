// Coroutines that GCC 12 miscompiles: closures. A comment names the finding
// in the function below it.
#include "forms.hpp"

// wrong: closure
task<int> lam_val() {
  int top = 0;
  sink(top);
  C c(1);
  co_await run([c] { c.check(); });
  co_return 0;
}

// wrong: closure
task<int> lam_init() {
  int top = 0;
  sink(top);
  co_await run([c = C(1)] { c.check(); });
  co_return 0;
}

// wrong: closure
task<int> lam_fun() {
  int top = 0;
  sink(top);
  C c(1);
  co_await fun([c] { c.check(); });
  co_return 0;
}

// wrong: closure
task<int> lam_corocap() {
  int top = 0;
  sink(top);
  C c(1);
  co_await [c]() -> task<int> {
    c.check();
    co_return 1;
  }();
  co_return 0;
}

// wrong: closure
task<int> lam_beside() {
  int top = 0;
  sink(top);
  C c(1);
  auto f = [](auto l, int k) {
    l();
    return k;
  };
  int n = f([c] { c.check(); }, co_await num());
  (void)n;
  co_return 0;
}

// wrong: closure
task<int> lamstar() {
  int top = 0;
  sink(top);
  struct B {
    C c;
    task<int> go() {
      int n = co_await run([*this] { c.check(); });
      co_return n;
    }
  };
  B b;
  co_await b.go();
  co_return 0;
}

// wrong: closure
task<int> lamnest() {
  int top = 0;
  sink(top);
  C c;
  co_await run([f = [c] { c.check(); }] { f(); });
  co_return 0;
}

// wrong: closure
task<int> lamaw() {
  int top = 0;
  sink(top);
  auto l = [c = co_await obj()] { c.check(); };
  l();
  co_return 0;
}

// good
task<int> lam_triv() {
  int top = 0;
  sink(top);
  int k = 2;
  co_await run([k] { (void)k; });
  co_return 0;
}

// good
task<int> lam_ref() {
  int top = 0;
  sink(top);
  C c(1);
  co_await run([&c] { c.check(); });
  co_return 0;
}

// good
task<int> lam_mv() {
  int top = 0;
  sink(top);
  C c(1);
  auto l = [c] { c.check(); };
  co_await run(std::move(l));
  co_return 0;
}

// good
task<int> fun_ctriv() {
  int top = 0;
  sink(top);
  co_await fun([] {});
  co_return 0;
}

// good
task<int> lam_coro() {
  int top = 0;
  sink(top);
  co_await [](C c) -> task<int> {
    c.check();
    co_return 1;
  }(C(1));
  co_return 0;
}

// good
task<int> lamthis() {
  int top = 0;
  sink(top);
  struct B {
    C c;
    task<int> go() {
      int n = co_await run([this] { c.check(); });
      co_return n;
    }
  };
  B b;
  co_await b.go();
  co_return 0;
}

// good
task<int> loclam() {
  int top = 0;
  sink(top);
  C c;
  auto l = [c] { c.check(); };
  co_await num();
  l();
  co_return 0;
}

// good
task<int> retlam() {
  int top = 0;
  sink(top);
  auto l = [](C c) -> task<std::function<void()>> {
    int z = 0;
    (void)z;
    co_return [c] { c.check(); };
  };
  auto a = co_await l(C(1));
  a();
  co_return 0;
}

// good
task<int> lamin() {
  int top = 0;
  sink(top);
  co_await run([] {
    C c;
    auto l = [c] { c.check(); };
    l();
  });
  co_return 0;
}

// good
task<int> lamaw2() {
  int top = 0;
  sink(top);
  auto l = [c = co_await num()] { sink(c); };
  l();
  co_return 0;
}
