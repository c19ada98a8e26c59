// WebSocket frames, as bytes: those of a client (masked) and those of a server (plain).
#pragma once

#include <cstddef>
#include <string>

namespace troupe::test {

inline std::string length_of(std::size_t bytes, int bit) {
  std::string text;
  if (bytes < 126) {
    text += static_cast<char>(bytes | static_cast<unsigned>(bit));
  } else if (bytes < 65536) {
    text += static_cast<char>(126 | bit);
    for (int i = 1; i >= 0; --i) text += static_cast<char>(bytes >> (8 * i));
  } else {
    text += static_cast<char>(127 | bit);
    for (int i = 7; i >= 0; --i) text += static_cast<char>(bytes >> (8 * i));
  }
  return text;
}
inline std::string masked(int first, std::string payload) {
  std::string frame(1, static_cast<char>(first));
  frame += length_of(payload.size(), 0x80) + "abcd";
  for (std::size_t i = 0; i < payload.size(); ++i)
    frame += static_cast<char>(payload[i] ^ "abcd"[i % 4]);
  return frame;
}
inline std::string plain(int first, const std::string& payload) {
  return static_cast<char>(first) + length_of(payload.size(), 0) + payload;
}
inline std::string number(int code) {
  return {static_cast<char>(code >> 8), static_cast<char>(code)};
}
inline const std::string bye = masked(0x88, number(1000));
inline std::string closing(int code) { return plain(0x88, number(code)); }

}  // namespace troupe::test
