#include "io/operations/arrival.hpp"

namespace troupe::io {

bool arrival::begin(stream& of) noexcept {
  at = of.descriptor_.bound();
  return at != nullptr && !owner().begin(*this);
}

}  // namespace troupe::io
