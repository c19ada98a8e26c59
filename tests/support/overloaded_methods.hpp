// A class whose methods cannot be named without arguments: one is overloaded, one is a template.
#pragma once

struct Sum {
  long add(int n) { return total += n; }
  long add(double n) { return total += static_cast<long>(n); }
  template <class N>
  long add_any(N n) {
    return total += static_cast<long>(n);
  }
  long total = 0;
};
