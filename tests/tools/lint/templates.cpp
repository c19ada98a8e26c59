// The forms in templates that nobody instantiates, in nested lambdas and in macros.
#include "forms.hpp"

// wrong: aggregate
template <class T>
task<int> pattern(T x) {
  int n = co_await keep(x, A{C(1)});
  co_return n;
}
// wrong: closure
template <class T>
task<int> closure(T x) {
  C c;
  int n = co_await x.go([c] { c.check(); });
  co_return n;
}
// wrong: makes a temporary
template <class T>
task<int> conditional(T x) {
  int n = co_await x.go(yesb ? C(1) : C(2));
  co_return n;
}
// wrong: even if its branch
template <class T>
task<int> branch(T x) {
  x.go(yesb ? co_await x.get() : 0);
  co_return 1;
}
// wrong: aggregate
template <class T>
task<int> instance(T x) {
  T y = x;
  int n = co_await keep(T{y.c});
  co_return n;
}
// good
task<int> instantiates() {
  auto t = instance(A{C(1)});
  co_return co_await std::move(t);
}
// wrong: aggregate
#define ASK(value) co_await byval(A{value})
task<int> macro() {
  int n = ASK(C(1));
  co_return n;
}
// wrong: makes a temporary
#define CHOOSE(condition, one, other) ((condition) ? (one) : (other))
task<int> macro_of_arguments() {
  int n = co_await byvalC(CHOOSE(yesb, C(1), C(2)));
  co_return n;
}
// wrong: aggregate
void nested() {
  auto outer = [] {
    return [](C c) -> task<int> {
      int n = co_await byval(A{c});
      co_return n;
    };
  };
  outer();
}
// wrong: aggregate
void generic() {
  auto l = [](auto c) -> task<int> {
    int n = co_await byval(A{C(c)});
    co_return n;
  };
  l(1);
}
// good
template <class T>
task<int> named(T x) {
  A a{C(1)};
  int n = co_await keep(x, std::move(a));
  co_return n;
}
// good
void no_coroutine() {
  auto l = [c = C(1)] { return usev(A{c}, 1); };
  sink(l() + useC(yesb ? C(1) : C(2)));
}
