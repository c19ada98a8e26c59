#include "fuzz/coding/decodings.hpp"

#include <cstddef>

#include "http/coding/decoder.hpp"

namespace troupe::test {
namespace {

constexpr std::size_t bytes_max = 1024 * 1024, memory_max = 20 * 1024 * 1024;

enum class end { whole, unfinished, malformed, too_large };

struct outcome {
  end how = end::whole;
  std::string text, wrong;
};

outcome decode(std::string_view from, http::coding by, std::size_t piece_bytes,
               std::size_t room_bytes) {
  const auto with = http::make_decoder(by);
  outcome made;
  std::string room(room_bytes, '\0');
  while (!from.empty()) {
    std::string_view piece = from.substr(0, piece_bytes);
    from.remove_prefix(piece.size());
    for (;;) {
      const std::size_t bytes = with->add(piece, room);
      made.text.append(room, 0, bytes);
      if (with->memory() > memory_max) made.wrong = "the decoder holds more than it may";
      made.how = with->is_malformed() ? end::malformed : end::too_large;
      if (with->is_malformed() || made.text.size() > bytes_max) return made;
      if (bytes < room.size()) break;
    }
    if (!piece.empty()) made.wrong = "bytes are left where there was room";
  }
  made.how = with->may_end() ? end::whole : end::unfinished;
  return made;
}

const char* name_of(end how) {
  constexpr const char* names[] = {"whole", "unfinished", "malformed", "too large"};
  return names[static_cast<std::size_t>(how)];
}

}  // namespace

std::string decodings_difference(std::string_view input) {
  if (input.size() < 2) return "";
  const auto byte = [input](std::size_t i) { return static_cast<unsigned char>(input[i]); };
  const auto by = static_cast<http::coding>(byte(0) % 3);
  if (!http::can_decode(by)) return "";
  const std::size_t piece_bytes = std::size_t{1} << (byte(0) / 3 % 12);
  const std::string_view body = input.substr(2);
  const outcome whole = decode(body, by, body.size() + 1, 16 * 1024),
                pieces = decode(body, by, piece_bytes, 1 + byte(1));
  if (!whole.wrong.empty() || !pieces.wrong.empty()) return whole.wrong + pieces.wrong;
  // Which of the two errors is found first depends on the room.
  if (whole.how == end::too_large || pieces.how == end::too_large) return "";
  if (whole.how != pieces.how)
    return std::string(name_of(whole.how)) + ", and in pieces " + name_of(pieces.how);
  if (whole.how != end::malformed && whole.text != pieces.text)
    return "the text is another one in pieces";
  return "";
}

}  // namespace troupe::test
