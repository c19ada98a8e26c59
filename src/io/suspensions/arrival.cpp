#include "io/suspensions/arrival.hpp"

namespace troupe::io {

bool arrival::begin(stream& stream) noexcept {
  at = stream.descriptor_.bound();
  const bool has_kept = at != nullptr && opcode == action::readable && at->kept != nullptr;
  return at != nullptr && !has_kept && !owner().begin(*this);
}

}  // namespace troupe::io
