// What is stored, as text: whoever has written it may have put any bytes into it.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "store.hpp"

namespace troupe_tool {
namespace {

using json = nlohmann::ordered_json;

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

// The shape is of a type with a codec of its own, or the bytes end too early.
struct unexplained : std::exception {};

// Reads a shape and bytes at the same time. A shape that is read without bytes is skipped.
class explainer {
 public:
  explainer(std::string_view shape, std::span<const std::byte> bytes)
      : shape_(shape), bytes_(bytes) {}

  json all() {
    json value = next_value();
    if (!shape_.empty() || !bytes_.empty()) throw unexplained();
    return value;
  }

 private:
  json next_value() {
    // `X?` is known as an optional only behind X.
    const std::string_view begin = shape_;
    skip();
    const bool optional = take("?");
    const std::string_view end = shape_;
    shape_ = begin;
    if (!optional) return plain();
    json value;
    if (number<std::uint8_t>() != 0) value = plain();
    shape_ = end;
    return value;
  }
  json plain() {
    if (take("bool")) return number<std::uint8_t>() != 0;
    if (take("text")) return text();
    for (const char* const word :
         {"enum ", "time ", "local time ", "day ", "month ", "year ", "weekday "}) {
      if (take(word)) return plain();
    }
    if (take("duration ")) return duration();
    if (take("[")) return list();
    if (take("<")) return tuple();
    if (take("(")) return variant();
    if (take("{")) return members();
    return numeric();
  }
  json numeric() {
    if (shape_.size() < 2) throw unexplained();
    const std::string_view kind = shape_.substr(0, 2);
    shape_.remove_prefix(2);
    if (kind == "i1") return number<std::int8_t>();
    if (kind == "i2") return number<std::int16_t>();
    if (kind == "i4") return number<std::int32_t>();
    if (kind == "i8") return number<std::int64_t>();
    if (kind == "u1") return number<std::uint8_t>();
    if (kind == "u2") return number<std::uint16_t>();
    if (kind == "u4") return number<std::uint32_t>();
    if (kind == "u8") return number<std::uint64_t>();
    if (kind == "f4") return number<float>();
    if (kind == "f8") return number<double>();
    throw unexplained();
  }
  json duration() {
    json value = numeric();
    const std::string unit = ratio();
    return value.dump() + " * " + unit + " s";
  }
  std::string ratio() {
    std::size_t size = shape_.find_first_not_of("0123456789/ ");
    if (size == std::string_view::npos) size = shape_.size();
    std::string text(shape_.substr(0, size));
    shape_.remove_prefix(size);
    return text.substr(text.find_first_not_of(' '));
  }
  json text() {
    const std::size_t size = number<std::uint32_t>();
    if (size > bytes_.size()) throw unexplained();
    std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text_value(value);
  }
  json list() {
    json values = json::array();
    const std::string_view element_shape = shape_;
    for (std::size_t left = number<std::uint32_t>(); left > 0; --left) {
      if (bytes_.empty()) throw unexplained();
      shape_ = element_shape;
      values.push_back(next_value());
    }
    shape_ = element_shape;
    skip();
    expect("]");
    return values;
  }
  json tuple() {
    json values = json::array();
    do {
      values.push_back(next_value());
    } while (take(","));
    expect(">");
    return values;
  }
  json variant() {
    const unsigned chosen = number<std::uint8_t>();
    json value;
    unsigned at = 0;
    do {
      if (at++ == chosen) {
        value = next_value();
      } else {
        skip();
      }
    } while (take("|"));
    expect(")");
    if (chosen >= at) throw unexplained();
    return value;
  }
  json members() {
    if (take("}")) {
      number<std::uint8_t>();
      return json::object();
    }
    json values = json::object();
    do {
      const std::size_t colon = shape_.find(':');
      if (colon == std::string_view::npos) throw unexplained();
      const std::string name(shape_.substr(0, colon));
      shape_.remove_prefix(colon + 1);
      values[name] = next_value();
    } while (take(","));
    expect("}");
    return values;
  }

  // Passes one shape, less a `?` behind it.
  void skip() {
    int depth = 0;
    std::size_t at = 0;
    for (; at < shape_.size(); ++at) {
      const char c = shape_[at];
      if (c == '{' || c == '[' || c == '<' || c == '(') ++depth;
      const bool closes = c == '}' || c == ']' || c == '>' || c == ')';
      if (depth == 0 && (closes || c == ',' || c == '|' || c == '?')) break;
      if (closes) --depth;
    }
    shape_.remove_prefix(at);
  }
  bool take(std::string_view word) {
    if (!shape_.starts_with(word)) return false;
    shape_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) throw unexplained();
  }
  template <class N>
  N number() {
    if (bytes_.size() < sizeof(N)) throw unexplained();
    N value;
    std::memcpy(&value, bytes_.data(), sizeof(N));
    static_assert(std::endian::native == std::endian::little);
    bytes_ = bytes_.subspan(sizeof(N));
    return value;
  }

  std::string_view shape_;
  std::span<const std::byte> bytes_;
};

}  // namespace

json text_value(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string hex;
  for (const char letter : text) hex += fmt::format("{:02X}", static_cast<unsigned char>(letter));
  return {{"hex", hex}};
}

json value_of(std::string_view shape, std::span<const std::byte> bytes) {
  try {
    return explainer(shape, bytes).all();
  } catch (const unexplained&) {
    std::string text;
    for (const std::byte byte : bytes)
      text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
  }
}

}  // namespace troupe_tool
