// Coroutines that GCC 12 miscompiles: aggregates. A comment names the finding
// in the function below it.
#include "forms.hpp"

// wrong: aggregate|default argument|list of values
task<int> agg_val() {
  int top = 0;
  sink(top);
  co_await byval(A{C(1)});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_brace() {
  int top = 0;
  sink(top);
  co_await byval({C(1)});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_desig() {
  int top = 0;
  sink(top);
  co_await byval({.c = C(1)});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_ref() {
  int top = 0;
  sink(top);
  co_await byref(A{C(1)});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_fwd() {
  int top = 0;
  sink(top);
  co_await fwd(A{C(1)});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_mvtmp() {
  int top = 0;
  sink(top);
  co_await byval(std::move(A{C(1)}));
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_memn() {
  int top = 0;
  sink(top);
  co_await num(A{C(1)}.c.n);
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_insider() {
  int top = 0;
  sink(top);
  co_await num(use(A{C(1)}, 2));
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> agg_left() {
  int top = 0;
  sink(top);
  int n = use(A{C(1)}, 1) + co_await num();
  (void)n;
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> defaggd() {
  int top = 0;
  sink(top);
  co_await defagg(1);
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> defrefd() {
  int top = 0;
  sink(top);
  co_await defrefagg(1);
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> arr2() {
  int top = 0;
  sink(top);
  co_await keep(std::array<C, 2>{1, 2});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> aggone() {
  int top = 0;
  sink(top);
  A a{co_await obj()};
  co_await num();
  a.c.check();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> aggtwob() {
  int top = 0;
  sink(top);
  A2 a{co_await obj(), C(1)};
  co_await num();
  a.c.check();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> aggonedes() {
  int top = 0;
  sink(top);
  A a{.c = co_await obj()};
  co_await num();
  a.c.check();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> aggnew() {
  int top = 0;
  sink(top);
  auto* p = new A{co_await obj()};
  delete p;
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> emplaceaw2() {
  int top = 0;
  sink(top);
  std::vector<A> v;
  v.push_back({co_await obj()});
  co_await num();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> asgagg() {
  int top = 0;
  sink(top);
  A a{C(1)};
  a = A{co_await obj()};
  co_await num();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> retaggb() {
  int top = 0;
  sink(top);
  auto l = []() -> task<A> {
    int z = 0;
    (void)z;
    co_return A{co_await obj()};
  };
  A a = co_await l();
  a.c.check();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> yieldaggaw() {
  int top = 0;
  sink(top);
  co_yield co_await byval(A{C(1)});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> ifagg() {
  int top = 0;
  sink(top);
  if (co_await byval(A{C(1)}) == 2) sink(1);
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> locarr2() {
  int top = 0;
  sink(top);
  C c[2] = {co_await obj(1), C(2)};
  co_await num();
  c[1].check();
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> ilI2() {
  int top = 0;
  sink(top);
  co_await vecI(std::vector<int>{1, 2});
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> ilStr() {
  int top = 0;
  sink(top);
  co_await fwd(std::vector<std::string>{"a", "b"});
  co_return 0;
}

// good
task<int> agg_mv() {
  int top = 0;
  sink(top);
  A a{C(1)};
  co_await byval(std::move(a));
  co_return 0;
}

// good
task<int> agg_copytmp() {
  int top = 0;
  sink(top);
  A a{C(1)};
  co_await fwd(A(a));
  co_return 0;
}

// good
task<int> agg_call() {
  int top = 0;
  sink(top);
  co_await byval(make_a());
  co_return 0;
}

// good
task<int> agg_awaitf() {
  int top = 0;
  sink(top);
  co_await fwd(co_await agg());
  co_return 0;
}

// good
task<int> ctor_val() {
  int top = 0;
  sink(top);
  co_await byvalC(C(1));
  co_return 0;
}

// good
task<int> ctor_cbr2() {
  int top = 0;
  sink(top);
  co_await byvalC({1});
  co_return 0;
}

// good
task<int> ctor_braces() {
  int top = 0;
  sink(top);
  co_await fwd(W{1});
  co_return 0;
}

// good
task<int> priv_br() {
  int top = 0;
  sink(top);
  co_await keep(Q{});
  co_return 0;
}

// good
task<int> triv_fwd() {
  int top = 0;
  sink(top);
  co_await fwd(P{1, 2});
  co_return 0;
}

// good
task<int> pairmk() {
  int top = 0;
  sink(top);
  co_await fwd(std::make_pair(C(1), C(2)));
  co_return 0;
}

// wrong: aggregate|default argument|list of values
task<int> optA() {
  int top = 0;
  sink(top);
  co_await fwd(std::optional<A>(A{C(1)}));
  co_return 0;
}

// good
task<int> defCd() {
  int top = 0;
  sink(top);
  co_await defC(1);
  co_return 0;
}

// good
task<int> ilempty2() {
  int top = 0;
  sink(top);
  co_await fwd(std::vector<int>{});
  co_return 0;
}

// good
task<int> newtask() {
  int top = 0;
  sink(top);
  auto t = byval(A{C(1)});
  co_await std::move(t);
  co_return 0;
}

// good
task<int> noaw() {
  int top = 0;
  sink(top);
  sink(usev(A{C(1)}, 2));
  co_await num();
  co_return 0;
}

// good
task<int> retagg() {
  int top = 0;
  sink(top);
  auto l = []() -> task<A> {
    int z = 0;
    (void)z;
    co_return A{C(1)};
  };
  A a = co_await l();
  a.c.check();
  co_return 0;
}

// good
task<int> rngagg() {
  int top = 0;
  sink(top);
  auto f = [](A a) { return std::vector<C>(2, a.c); };
  for (const C& x : f(A{C(1)})) {
    x.check();
    co_await num();
  }
  co_return 0;
}

// good
task<int> refagg() {
  int top = 0;
  sink(top);
  const A& a = A{C(1)};
  co_await num();
  a.c.check();
  co_return 0;
}

// good
task<int> aggnewn() {
  int top = 0;
  sink(top);
  auto* p = new A2{C(1), C(2)};
  co_await num();
  delete p;
  co_return 0;
}

// good
task<int> aggintP() {
  int top = 0;
  sink(top);
  P p{co_await num(), co_await num()};
  if (p.a != 5) ++faults;
  co_return 0;
}

// good
task<int> pairawb() {
  int top = 0;
  sink(top);
  std::pair<C, C> p{co_await obj(), co_await obj()};
  co_await num();
  co_return 0;
}

// good
task<int> locagg2() {
  int top = 0;
  sink(top);
  A a = A{C(1)};
  co_await num();
  a.c.check();
  co_return 0;
}

// good
task<int> arri() {
  int top = 0;
  sink(top);
  co_await keep(std::array<int, 2>{1, 2});
  co_return 0;
}

// good
task<int> mkuniq() {
  int top = 0;
  sink(top);
  auto p = std::make_unique<A>(co_await obj());
  p->c.check();
  co_return 0;
}
