#pragma once

#include <troupe/troupe.hpp>

struct counter {
  void add(int n) { total += n; }
  int total = 0;
};

void add_twenty(const troupe::ref<counter>& to);
