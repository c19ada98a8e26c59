// registry: the instruments of a program.
#pragma once

#include <functional>
#include <string>

#include "observe/numbers/tables.hpp"

namespace troupe::observe {

// Numbers of something that no runtime has, which are shown while this lives.
class number_source {
 public:
  // For a source whose name another source of its group has: it is refused with usage_error, or it
  // is called "name (2)", "name (3)" and so on. A source that `number` was given to leaves its name
  // to a later one that is refused otherwise.
  enum class same_name { refuse, number };
  using reader = std::function<void(row_sink&, const std::string& name)>;

  // `read` is called with the source's name under a lock, which the destructor takes.
  number_source(const number_group& group, std::string name, reader read,
                same_name taken = same_name::refuse);
  number_source(const number_source&) = delete;
  number_source& operator=(const number_source&) = delete;
  ~number_source();

 private:
  friend void collect_sources(row_sink& to);
  const number_group& group_;
  std::string name_;
  const reader read_;
  const same_name taken_;
};

// A table for each instrument that lives, and one of those whose labels have too many values, if
// there are instruments with labels; and the tables of all sources. Thread: any. Throws
// std::bad_alloc.
void collect_instruments(number_tables& to);
// The tables of the sources alone.
void collect_sources(row_sink& to);

}  // namespace troupe::observe
