// summary: the state of one runtime as JSON: its metrics, and what its actors have done by class
// and handler. docs/guide/observing.md says what each member means.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/observing/json_text.hpp"

namespace troupe {
class runtime_core;
}
namespace troupe::actor {
struct seen_actor;
}

namespace troupe::observing {

// Appends an object. Throws std::bad_alloc.
void write_summary(json_text& to, runtime_core& core);

// Appends an object with a page of at most `most` actors, from the id `from` on, and the id of the
// next page (0: none). Of one class only, if `of_class` is not empty.
void write_actors(json_text& to, runtime_core& core, std::uint64_t from, std::size_t most,
                  std::string_view of_class);

// Appends an object with the actors that have most mail, the longest mailbox first.
void write_longest(json_text& to, runtime_core& core, std::size_t most, std::string_view of_class);

// Appends an object with what is known of one actor.
void write_actor(json_text& to, const runtime_core& core, const actor::seen_actor& one);
// What one tick of the counts lasts.
double ns_per_tick_of(const runtime_core& core) noexcept;

}  // namespace troupe::observing
