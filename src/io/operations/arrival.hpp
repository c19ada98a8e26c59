// arrival: tells when bytes come to a stream that nobody reads, or when the peer of a stream has
// gone: without a coroutine, a timer or a buffer. For servers of many idle connections, and of
// requests that take long. The library's own.
#pragma once

#include "io/reactor/reactor.hpp"
#include "troupe/io/operations/operation.hpp"
#include "troupe/io/stream.hpp"

namespace troupe::io {

// The stream stays open for as long as it waits, and is not read, unless it waits for the peer's
// end alone. It ends only by being told of, as all operations do.
class arrival : public operation {
 public:
  // Called on the thread that found it, or in end(); it may be gone afterwards.
  explicit arrival(void (*told)(arrival& self) noexcept) noexcept
      : operation(action::readable, false), came(told) {}
  // Of the end alone: the peer's connection was reset, or one of `ends` of poll(2) has come.
  arrival(void (*told)(arrival& self) noexcept, short ends) noexcept
      : operation(action::ended, false), came(told) {
    extra = ends;
  }

  // In a turn, of a stream that was used before. False: something is there already, or the end, or
  // an error: nobody is told. True: it is told of, perhaps before this returns.
  bool begin(stream& of) noexcept;
  // Any thread, as long as it is there: it is told of now, if it still waits, with a negative
  // result.
  void end() noexcept { home().cancel(*this); }
  reactor& home() const noexcept { return *at->owner; }

  void (*const came)(arrival& self) noexcept;
};

}  // namespace troupe::io
