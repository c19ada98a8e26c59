// Coroutines that GCC 12 miscompiles: branches. A comment names the finding
// in the function below it.
#include "forms.hpp"

// wrong: even if its branch
task<int> cond_awarg() {
  int top = 0;
  sink(top);
  sink(nob ? co_await num(1) : 0);
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> cond_awret2() {
  int top = 0;
  sink(top);
  auto l = [](bool b) -> task<int> {
    int z = 0;
    (void)z;
    co_return b ? co_await num(1) : 0;
  };
  co_await l(false);
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> and_awarg() {
  int top = 0;
  sink(top);
  sink(nob && co_await yes());
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> or_awret() {
  int top = 0;
  sink(top);
  auto l = [](bool b) -> task<bool> {
    int z = 0;
    (void)z;
    co_return b || co_await yes();
  };
  co_await l(true);
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> and_awwhile() {
  int top = 0;
  sink(top);
  while (nob && co_await yes()) ++faults;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> dowhile() {
  int top = 0;
  sink(top);
  do {
  } while (nob && co_await yes());
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> forcond() {
  int top = 0;
  sink(top);
  for (; nob ? co_await yes() : false;) break;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> forinc() {
  int top = 0;
  sink(top);
  int i = 0;
  for (; i < 1; i += nob ? co_await num() : 1) {
  }
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> initcmp() {
  int top = 0;
  sink(top);
  bool n = (nob ? co_await num() : 0) == 3;
  (void)n;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> initctor() {
  int top = 0;
  sink(top);
  C c(nob ? co_await num() : 0);
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> opasg() {
  int top = 0;
  sink(top);
  int n = 0;
  n += nob ? co_await num() : 0;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> asgC() {
  int top = 0;
  sink(top);
  C c;
  c = nob ? co_await num() : 0;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> yielda() {
  int top = 0;
  sink(top);
  co_yield nob&& co_await yes();
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> awc() {
  int top = 0;
  sink(top);
  co_await num(nob ? co_await num() : 0);
  if (calls != 1) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> and3() {
  int top = 0;
  sink(top);
  bool b = nob && co_await yes() && yesb;
  (void)b;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> andini3() {
  int top = 0;
  sink(top);
  int b = nob && co_await yes();
  (void)b;
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> swand() {
  int top = 0;
  sink(top);
  switch (nob && co_await yes()) { default:; }
  if (calls != 0) ++faults;
  co_return 0;
}

// wrong: even if its branch
task<int> elvisC() {
  int top = 0;
  sink(top);
  sink(int(yesb) ?: co_await num());
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> cond_awaitn() {
  int top = 0;
  sink(top);
  int n = nob ? co_await num(1) : co_await num(2);
  if (calls != 1) ++faults;
  (void)n;
  co_return 0;
}

// good
task<int> cond_awasg() {
  int top = 0;
  sink(top);
  int n;
  n = nob ? co_await num(1) : 0;
  if (calls != 0) ++faults;
  (void)n;
  co_return 0;
}

// good
task<int> and_awif() {
  int top = 0;
  sink(top);
  if (nob && co_await yes()) ++faults;
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> or_await() {
  int top = 0;
  sink(top);
  bool b = yesb || co_await yes();
  if (calls != 0) ++faults;
  (void)b;
  co_return 0;
}

// good
task<int> ifnot() {
  int top = 0;
  sink(top);
  if (!(yesb && co_await yes())) ++faults;
  if (calls != 1) ++faults;
  co_return 0;
}

// good
task<int> initauto() {
  int top = 0;
  sink(top);
  auto n = nob ? co_await num() : 0;
  (void)n;
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> voidc() {
  int top = 0;
  sink(top);
  (void)(nob ? co_await num() : 0);
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> ifdecl() {
  int top = 0;
  sink(top);
  if (bool k = nob && co_await yes()) sink(k);
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> whvar() {
  int top = 0;
  sink(top);
  while (bool b = nob && co_await yes()) sink(b);
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> and3ifb() {
  int top = 0;
  sink(top);
  if (nob && co_await yes() && co_await no()) sink(1);
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> andmix() {
  int top = 0;
  sink(top);
  bool b = yesb && (nob || co_await no());
  (void)b;
  if (calls != 1) ++faults;
  co_return 0;
}

// good
task<int> condnest2() {
  int top = 0;
  sink(top);
  int n = nob ? 1 : nob ? co_await num() : co_await num();
  (void)n;
  if (calls != 1) ++faults;
  co_return 0;
}

// good
task<int> ifandcmp() {
  int top = 0;
  sink(top);
  if (nob && co_await num() == 3) sink(1);
  if (calls != 0) ++faults;
  co_return 0;
}

// good
task<int> forinit() {
  int top = 0;
  sink(top);
  for (int i = nob ? co_await num() : 1; i < 1; ++i) {
  }
  if (calls != 0) ++faults;
  co_return 0;
}
