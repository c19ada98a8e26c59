// statement_counts: how long statements take, by their text without values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::database {

// The statement as a label: without comments, each run of blanks as one space, each text and number
// as `?`, as quoted names, and at most 200 bytes. Parameters ($1, ?) are no values, and stay.
// Throws std::bad_alloc.
std::string normalized(std::string_view statement);

// The moment at which a statement begins; 0 unless the program is observed.
std::int64_t statement_begins() noexcept;
// Counts a statement of that kind of database ("postgres"), unless `began_ns` is 0. Beyond 200
// different texts the rest is counted as "(others)". Thread: any.
void statement_ends(const char* database, std::string_view text, std::int64_t began_ns,
                    bool failed) noexcept;

}  // namespace troupe::database
