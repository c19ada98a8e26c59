#include <troupe/troupe.hpp>

int count_of(const troupe::runtime& of) { return static_cast<int>(of.metrics().spawned); }
