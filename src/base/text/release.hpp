// release: gives the memory of a text back.
#pragma once

#include <string>

namespace troupe::base {

// Leaves the text empty. `text = std::string()` would keep the memory: libstdc++ copies a text that
// is so short into the other's memory.
inline void release(std::string& text) noexcept { std::string().swap(text); }

}  // namespace troupe::base
