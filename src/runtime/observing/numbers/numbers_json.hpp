// numbers_json: declared numbers as JSON.
#pragma once

#include "observe/numbers/tables.hpp"
#include "runtime/observing/numbers/json_text.hpp"

namespace troupe::observing {

// Appends each number of the group as a member; a histogram as an object with `sum`, `count`, `p50`
// and `p99`. Throws std::bad_alloc.
void write_members(json_text& out, const observe::number_group& group, const void* values);
template <class Values>
void write_members(json_text& out, const observe::number_table<Values>& table,
                   const Values& values) {
  write_members(out, table, static_cast<const void*>(&values));
}

// Appends an array of all tables. Throws std::bad_alloc.
void write_tables(json_text& out, const observe::number_tables& all);

}  // namespace troupe::observing
