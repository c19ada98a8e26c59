// Coroutines that GCC 12 miscompiles: conditionals. A comment names the finding
// in the function below it.
#include "forms.hpp"

// wrong: makes a temporary
task<int> cond_ctor() {
  int top = 0;
  sink(top);
  co_await byvalC(yesb ? C(1) : C(2));
  co_return 0;
}

// wrong: makes a temporary
task<int> cond_mix() {
  int top = 0;
  sink(top);
  C c(1);
  co_await byvalC(yesb ? c : C(2));
  co_return 0;
}

// wrong: makes a temporary
task<int> cond_task3() {
  int top = 0;
  sink(top);
  co_await (nob ? num(1) : num(2));
  co_return 0;
}

// wrong: makes a temporary
task<int> cond_awobj() {
  int top = 0;
  sink(top);
  C c = nob ? co_await obj(1) : C(2);
  if (calls != 0) ++faults;
  c.check();
  co_return 0;
}

// wrong: makes a temporary
task<int> cond_awcondC() {
  int top = 0;
  sink(top);
  C c = co_await yes() ? C(1) : C(2);
  c.check();
  co_return 0;
}

// wrong: makes a temporary
task<int> cond_beside() {
  int top = 0;
  sink(top);
  int n = useC(yesb ? C(1) : C(2)) + co_await num();
  (void)n;
  co_return 0;
}

// wrong: makes a temporary
task<int> condaggc() {
  int top = 0;
  sink(top);
  co_await keep(yesb ? make_a() : make_a(2));
  co_return 0;
}

// wrong: makes a temporary
task<int> condlvm() {
  int top = 0;
  sink(top);
  C c(1);
  const C d(2);
  co_await byvalC(yesb ? std::move(c) : d);
  co_return 0;
}

// wrong: makes a temporary
task<int> cond_strx() {
  int top = 0;
  sink(top);
  std::string s = "long enough for the heap, surely, no small string";
  co_await str(yesb ? s : std::string());
  co_return 0;
}

// wrong: makes a temporary
task<int> yieldr() {
  int top = 0;
  sink(top);
  co_yield useC(yesb ? C(1) : C(2)) + co_await num();
  co_return 0;
}

// good
task<int> cond_lv() {
  int top = 0;
  sink(top);
  C c(1), d(2);
  co_await byvalC(yesb ? c : d);
  co_return 0;
}

// good
task<int> cond_mv2() {
  int top = 0;
  sink(top);
  C c(1), d(2);
  co_await byvalC(yesb ? std::move(c) : std::move(d));
  co_return 0;
}

// good
task<int> cond_triv() {
  int top = 0;
  sink(top);
  co_await num(yesb ? 1 : 2);
  co_return 0;
}

// good
task<int> cond_argtmp1() {
  int top = 0;
  sink(top);
  co_await num(yesb ? useC(C(1)) : 0);
  co_return 0;
}

// good
task<int> cond_str() {
  int top = 0;
  sink(top);
  co_await str(yesb ? "a string that is long enough for the heap, surely" : "b");
  co_return 0;
}

// good
task<int> cond_noaw() {
  int top = 0;
  sink(top);
  C c = yesb ? C(1) : C(2);
  c.check();
  co_await num();
  co_return 0;
}

// good
task<int> retcondf() {
  int top = 0;
  sink(top);
  auto l = [](bool b) -> task<int> {
    C c;
    co_return useC(b ? c : C(2));
  };
  co_await l(true);
  co_return 0;
}

// good
task<int> tern_opt() {
  int top = 0;
  sink(top);
  co_await fwd(yesb ? std::optional<int>(1) : std::nullopt);
  co_return 0;
}

// good
task<int> refcond() {
  int top = 0;
  sink(top);
  const C& a = yesb ? C(1) : C(2);
  co_await num();
  a.check();
  co_return 0;
}

// good
task<int> cond_awcondlv() {
  int top = 0;
  sink(top);
  C c(1), d(2);
  const C& e = co_await yes() ? c : d;
  e.check();
  co_return 0;
}
