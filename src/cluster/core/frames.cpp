#include "cluster/core/frames.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace troupe::cluster::parts {
namespace {

constexpr char request_mark = 'R', answer_mark = 'A';
// Grows when the bytes change; a node answers others of its own version alone.
constexpr char version = 1;
constexpr std::size_t short_text_max = name_bytes_max;

// Return the place behind it.
inline char* write_bytes(char* to, std::string_view bytes) noexcept {
  std::ranges::copy(bytes, to);
  return to + bytes.size();
}
template <class N>
char* write(char* to, N value) noexcept {
  auto raw = std::bit_cast<std::array<char, sizeof(N)>>(value);
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
  return write_bytes(to, {raw.data(), raw.size()});
}
std::size_t head_bytes(const request_frame& request) noexcept {
  constexpr std::size_t numbers = 3 + 8 + 8 + 4 * 4;
  return numbers + request.trace.size() + request.kind.size() + request.key.size() +
         request.method.size();
}
char* write_head(char* place, const request_frame& request) noexcept {
  place = write(place, request_mark);
  place = write(place, version);
  place = write(place, static_cast<std::uint8_t>(request.to));
  place = write(place, request.signature);
  place = write(place, request.remaining_us);
  for (const std::string_view text : {request.trace, request.kind, request.key, request.method})
    place = write_bytes(write(place, static_cast<std::uint32_t>(text.size())), text);
  return place;
}
template <class N>
void put(std::string& frame, N value) {
  char raw[sizeof(N)];
  write(raw, value);
  frame.append(raw, sizeof raw);
}
void put_text(std::string& to, std::string_view text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

class frame_reader {
 public:
  explicit frame_reader(std::string_view from) noexcept : rest_(from) {}
  template <class N>
  bool get(N& into) noexcept {
    if (rest_.size() < sizeof(N)) return false;
    std::array<char, sizeof(N)> raw;
    std::memcpy(raw.data(), rest_.data(), sizeof(N));
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
    into = std::bit_cast<N>(raw);
    rest_.remove_prefix(sizeof(N));
    return true;
  }
  bool get_text(std::string_view& into) noexcept {
    std::uint32_t size = 0;
    if (!get(size) || size > rest_.size() || size > short_text_max) return false;
    into = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool get_mark(char mark) noexcept {
    char first = 0, second = 0;
    return get(first) && get(second) && first == mark && second == version;
  }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace

std::string write_trace() {
  const auto trace = this_call::trace();
  if (!trace) return {};
  std::string text = trace->traceparent();
  if (!trace->tracestate().empty()) (text += ' ') += trace->tracestate();
  return text;
}

std::optional<trace_context> read_trace(std::string_view from) noexcept {
  const std::size_t blank = std::min(from.find(' '), from.size());
  const std::string_view parent = from.substr(0, blank);
  from.remove_prefix(std::min(blank + 1, from.size()));
  return trace_context::parse(parent, from);
}

// Each of a message's parts is copied once: a string that grows looks for room at each.
std::string write_request(const request_frame& request) {
  std::string frame;
  const std::size_t size = head_bytes(request) + request.arguments.size();
  frame.resize_and_overwrite(size, [&request](char* begin, std::size_t) noexcept {
    char* const end = write_bytes(write_head(begin, request), request.arguments);
    return static_cast<std::size_t>(end - begin);
  });
  return frame;
}

std::vector<std::byte> write_head(const request_frame& request) {
  constexpr std::size_t few_arguments = 64;
  std::vector<std::byte> frame;
  const std::size_t size = head_bytes(request);
  frame.reserve(size + few_arguments);
  frame.resize(size);
  write_head(reinterpret_cast<char*>(frame.data()), request);
  return frame;
}

std::optional<request_frame> read_request(std::string_view from) noexcept {
  frame_reader reader(from);
  request_frame request;
  std::uint8_t target = 0;
  if (!reader.get_mark(request_mark) || !reader.get(target) ||
      target > static_cast<std::uint8_t>(request_frame::target::cycle) ||
      !reader.get(request.signature) || !reader.get(request.remaining_us) ||
      request.remaining_us < 0 || !reader.get_text(request.trace) ||
      !reader.get_text(request.kind) || !reader.get_text(request.key) ||
      !reader.get_text(request.method))
    return std::nullopt;
  request.to = static_cast<request_frame::target>(target);
  request.arguments = reader.rest();
  return request;
}

std::string write_answer(const answer_frame& answer) {
  std::string frame;
  frame.reserve(8 + answer.type.size() + answer.bytes.size());
  frame += answer_mark;
  frame += version;
  put(frame, static_cast<std::uint8_t>(answer.kind));
  if (answer.kind == answer_kind::exception)
    put_text(frame, answer.type.substr(0, std::min(answer.type.size(), short_text_max)));
  frame += answer.bytes;
  return frame;
}

std::optional<answer_frame> read_answer(std::string_view from) noexcept {
  frame_reader reader(from);
  answer_frame answer;
  std::uint8_t kind = 0;
  if (!reader.get_mark(answer_mark) || !reader.get(kind) ||
      kind > static_cast<std::uint8_t>(answer_kind::deadlock))
    return std::nullopt;
  answer.kind = static_cast<answer_kind>(kind);
  if (answer.kind == answer_kind::exception && !reader.get_text(answer.type)) return std::nullopt;
  answer.bytes = reader.rest();
  return answer;
}

answer_frame checked_answer(std::string_view from) {
  const std::optional<answer_frame> answer = read_answer(from);
  if (!answer)
    throw error(failure::malformed,
                "troupe: cluster: the answer does not have troupe's format; keep other programs "
                "off the cluster's subjects");
  return *answer;
}

}  // namespace troupe::cluster::parts
