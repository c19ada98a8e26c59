// Coroutines that await in a condition, with and without a variable (GCC's bug 106188).
#include "forms.hpp"

// wrong: has no variable
task<int> alone() {
  if (co_await yes()) sink(1);
  co_return 1;
}
// wrong: has no variable
task<int> parameter(C c) {
  while (co_await no()) c.check();
  co_return 1;
}
// wrong: has no variable
task<int> behind_else() {
  if (nob)
    sink(1);
  else if (co_await yes())
    sink(2);
  co_return 1;
}
// wrong: has no variable
task<int> in_try() {
  try {
    if (co_await yes()) sink(1);
  } catch (...) {
    sink(2);
  }
  co_return 1;
}
// wrong: has no variable
task<int> in_switch() {
  switch (co_await num()) {
    case 5:
      sink(1);
      break;
    default:
      sink(2);
  }
  co_return 1;
}
// wrong: has no variable
task<int> in_do() {
  do sink(1);
  while (co_await no());
  co_return 1;
}
struct method {
  C c;
  // wrong: has no variable
  task<int> go() {
    if (co_await yes()) c.check();
    co_return 1;
  }
};
// good
task<int> named() {
  const bool ok = co_await yes();
  if (ok) sink(1);
  co_return 1;
}
// good
task<int> in_block() {
  if (co_await yes()) {
    C c;
    c.check();
  }
  co_return 1;
}
// good
task<int> no_condition() {
  sink(co_await num());
  co_return 1;
}
// good
task<int> in_lambda() {
  auto l = []() -> task<int> {
    if (co_await yes()) sink(1);
    co_return 1;
  };
  co_return co_await l();
}
