// arrival: reports when bytes come to a stream on which no read waits, or when the peer of a stream
// has disconnected, without a coroutine, a timer or a buffer. For servers with many idle
// connections, and for requests that take long. Internal to the library.
#pragma once

#include "io/reactor/reactor.hpp"
#include "troupe/io/operations/operation.hpp"
#include "troupe/io/stream.hpp"

namespace troupe::io {

// The stream must stay open while the arrival waits. It must not be read, unless the arrival waits
// only for the end of the peer. The wait ends only by a report, as all operations do.
class arrival : public operation {
 public:
  // `on_report` is called on the thread that found the bytes, or in end(). The arrival may be freed
  // in it.
  explicit arrival(void (*on_report)(arrival& self) noexcept) noexcept
      : operation(action::readable, false), came(on_report) {}
  // Waits only for the end: the peer has reset the connection, or one of `ends` of poll(2) is
  // reported.
  arrival(void (*on_report)(arrival& self) noexcept, short ends) noexcept
      : operation(action::ended, false), came(on_report) {
    extra = ends;
  }

  // Call it in a turn, for a stream that was used before. False: bytes, the end or an error are
  // there already, and nothing is reported. True: it is reported, perhaps before this returns.
  bool begin(stream& stream) noexcept;
  // Any thread, as long as the arrival exists: if it still waits, it is reported now, with a
  // negative result.
  void end() noexcept { owner().cancel(*this); }
  reactor& owner() const noexcept { return *at->owner; }

  void (*const came)(arrival& self) noexcept;
};

}  // namespace troupe::io
