#include "troupe/context/check.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include "context/current_context.hpp"
#include "context/keep.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/owner_of.hpp"

namespace troupe::contexts {
namespace {

std::string home_of(const context* home) {
  return home != nullptr ? describe(*home) : std::string("no context");
}

}  // namespace

void check_references(const void* object, std::size_t bytes, const char* owner_text) {
  if constexpr (!checked) return;
  const context* const home = owner_of(object);
  const auto* at = static_cast<const std::byte*>(object);
  for (std::size_t i = 0; i + sizeof(void*) <= bytes; i += sizeof(void*)) {
    const void* word = nullptr;
    std::memcpy(&word, at + i, sizeof word);
    const context* const other = owner_of(word);
    if (other == nullptr || access::has_keeps(*other)) continue;
    const std::string text =
        std::string("troupe: ") + owner_text + " in " + home_of(home) + " would refer to ";
    if (other != home) {
      throw foreign_context_error(
          text + describe(*other) +
          ", which may end before it: persist() or promote() what is to be stored");
    }
    if (access::between(*home, object, word) != nullptr) {
      throw foreign_context_error(text + "what is newer than a snapshot of " + describe(*other) +
                                  ", and goes with a rollback to that: promote() it into the older "
                                  "memory, or allocate it there");
    }
  }
}

}  // namespace troupe::contexts
