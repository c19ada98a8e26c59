// check: finds, in checked builds, pointers that would outlive their targets.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>

namespace troupe::contexts {

// Checks each word of an object for a pointer into a context that may end before the object: into
// another context's memory, or into memory of the same context that is newer than a snapshot taken
// after the object. Throws foreign_context_error, which names both. Not found: pointers into a
// context in which something was persisted, and pointers behind another pointer. Does nothing
// except in checked builds of the library. The last argument is for the text.
void check_references(const void* object, std::size_t bytes, const char* owner_text);

}  // namespace troupe::contexts
