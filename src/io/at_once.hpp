// at_once: a write that is tried without a coroutine's wait. For who writes small answers, which the system nearly always takes.
// The library's own.
#pragma once

#include <cstddef>
#include <string_view>

#include "io/reactor.hpp"
#include "troupe/io/stream.hpp"

namespace troupe::io {

struct at_once {
  // In a turn, of a stream that was used before: how many bytes the system took. 0 when it takes none now, when others write, or
  // when it refuses: a write that is awaited then waits, or says why.
  static std::size_t write(stream& to, std::string_view bytes) noexcept {
    slot* const at = to.kind_ == stream_kind::socket ? to.descriptor_.bound() : nullptr;
    return at == nullptr ? 0 : at->owner->write_at_once(*at, bytes);
  }
};

}  // namespace troupe::io
