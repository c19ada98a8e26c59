// randomness: OpenSSL's random numbers for connections over simulated sockets, so that a seed
// repeats the lengths of their messages (docs/protocols/simulation.md). All other connections, and
// all other uses of OpenSSL, get OpenSSL's own.
#pragma once

#include <optional>
#include <random>

#include "troupe/io/stream.hpp"

namespace troupe::tls {

// The random numbers of one connection. Thread: under the connection's mutex.
class randomness {
 public:
  // `over`: simulated numbers only if this is a simulated socket, and the calling code belongs to a
  // simulated program.
  explicit randomness(const stream& over);

  // While it exists, OpenSSL takes the numbers of this thread from here. They nest.
  class use {
   public:
    explicit use(randomness& source) noexcept;
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    ~use();

   private:
    randomness* const before_;
  };

 private:
  static int fill(unsigned char* to, int bytes);

  std::optional<std::mt19937_64> simulated_;
};

}  // namespace troupe::tls
