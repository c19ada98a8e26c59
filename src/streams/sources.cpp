#include "troupe/streams/sources.hpp"

#include "troupe/streams/concurrent.hpp"

namespace troupe::streams {

void check_count(const char* function, std::size_t count) {
  if (count != 0) return;
  throw usage_error(std::string("troupe: streams::") + function +
                    ": the number must be at least 1");
}

namespace detail {

void throw_too_long(const char* unit, std::size_t most) {
  throw frame_too_long(std::string("troupe: streams: ") + unit + " is longer than " +
                       std::to_string(most) + " bytes, the limit that was given");
}

void throw_cut_frame(std::size_t received, std::size_t announced) {
  throw frame_cut("troupe: streams::frames: the input ended after " + std::to_string(received) +
                  " of the " + std::to_string(announced) + " bytes of a frame");
}

std::uint32_t length_of(const std::array<char, 4>& head) noexcept {
  std::uint32_t length = 0;
  for (const char byte : head) length = length << 8 | static_cast<unsigned char>(byte);
  return length;
}

}  // namespace detail

}  // namespace troupe::streams
