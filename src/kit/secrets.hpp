// secrets: random texts that cannot be guessed.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace troupe::kit {

// Texts of the operating system's random source, which is asked for several at once; in the
// handlers and tasks of a simulated program, texts that follow from its seed. Thread: under the
// lock of the object.
class secret_source {
 public:
  // 22 letters, digits, `-` and `_`: 132 random bits. Cost: about 50 ns. Throws std::system_error
  // if the source gives nothing.
  std::string token();

 private:
  unsigned char next();

  // At most 256 bytes come at once, whatever signals arrive (getrandom(2)).
  std::array<unsigned char, 256> bytes_{};
  std::size_t left_ = 0;
};

}  // namespace troupe::kit
