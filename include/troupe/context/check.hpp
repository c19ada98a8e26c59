// check: looks in checked builds for pointers that are about to outlive what they point to.
#pragma once

#include <cstddef>

namespace troupe::contexts {

// Looks at each word of an object for a pointer into a context that may end before the object:
// another context's memory, or the same one's that is newer than a snapshot behind the object.
// Throws foreign_context_error, which names both. What contexts have that something was persisted
// in is let through, as is what lies behind a pointer. Does nothing but in checked builds of the
// library. `what` is for the text.
void check_references(const void* object, std::size_t bytes, const char* what);

}  // namespace troupe::contexts
