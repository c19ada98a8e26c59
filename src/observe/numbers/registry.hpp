// registry: the instruments of a program.
#pragma once

#include <functional>
#include <string>

#include "observe/numbers/tables.hpp"

namespace troupe::observe {

// Numbers of something that no runtime has, which are shown while this lives.
class number_source {
 public:
  // `read` is called under a lock, which the destructor takes. `of` and the name tell sources
  // apart: two that are equal are a usage_error.
  number_source(const number_group& of, std::string name, std::function<void(row_sink&)> read);
  number_source(const number_source&) = delete;
  number_source& operator=(const number_source&) = delete;
  ~number_source();

 private:
  friend void collect_sources(row_sink& to);
  const number_group& of_;
  const std::string name_;
  const std::function<void(row_sink&)> read_;
};

// A table for each instrument that lives, and one of those whose labels have too many values, if
// there are instruments with labels; and those of all sources. Thread: any. Throws std::bad_alloc.
void collect_instruments(number_tables& to);
// Those of the sources alone.
void collect_sources(row_sink& to);

}  // namespace troupe::observe
