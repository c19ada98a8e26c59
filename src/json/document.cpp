#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "troupe/base/platform.hpp"
#include "troupe/json/error.hpp"
#include "troupe/json/value.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <simdjson.h>
#pragma GCC diagnostic pop

// Rejected: simdjson's on-demand reader. It does not check skipped parts, so that a text that is
// no JSON could be read (docs/decisions/json.md).
namespace troupe::json::parts {

namespace {

template <class T>
handle packed(const T& is) noexcept {
  static_assert(sizeof(T) == sizeof(handle) && std::is_trivially_copyable_v<T>);
  return std::bit_cast<handle>(is);
}
template <class T>
T unpacked(const handle& is) noexcept {
  return std::bit_cast<T>(is);
}

using simdjson::dom::element;
using element_type = simdjson::dom::element_type;

constexpr std::size_t depth_most = 1'000;
// A thread keeps a parser up to this capacity, which takes about four times as much memory.
constexpr std::size_t kept_bytes = 256 * 1024;

}  // namespace

struct document::parser {
  simdjson::dom::parser is;
};

namespace {

// The parser that this thread keeps. Reading one text inside of another finds none.
template <class Parser>
TROUPE_NOINLINE std::unique_ptr<Parser>& kept_parser() noexcept {
  thread_local std::unique_ptr<Parser> kept;
  return kept;
}

}  // namespace

document::document(std::string_view text, const read_options& how)
    : parser_(std::exchange(kept_parser<parser>(), nullptr)) {
  if (text.size() > how.bytes)
    throw json_error("", "the text has more than " + std::to_string(how.bytes) + " bytes");
  if (text.empty()) text = std::string_view("");  // simdjson copies it, and allows no null pointer
  if (parser_ == nullptr) parser_ = std::make_unique<parser>();
  simdjson::dom::parser& by = parser_->is;
  const std::size_t depth = std::clamp(how.depth, std::size_t{1}, depth_most);
  // simdjson's own limit is the depth that it refuses.
  simdjson::error_code bad = simdjson::SUCCESS;
  if (text.size() > by.capacity() || depth + 1 != by.max_depth())
    bad = by.allocate(std::max({text.size(), by.capacity(), std::size_t{1'024}}), depth + 1);
  element root;
  if (bad == simdjson::SUCCESS) bad = by.parse(text.data(), text.size(), true).get(root);
  if (bad == simdjson::DEPTH_ERROR)
    throw json_error("", "the depth is more than " + std::to_string(depth));
  if (bad != simdjson::SUCCESS) {
    throw json_error("", "this is not JSON: " + std::string(simdjson::error_message(bad)));
  }
  root_ = packed(root);
}

document::~document() {
  if (parser_ != nullptr && parser_->is.capacity() <= kept_bytes)
    kept_parser<parser>() = std::move(parser_);
}

kind value::kind() const noexcept {
  switch (unpacked<element>(is_).type()) {
    case element_type::ARRAY:
      return kind::array;
    case element_type::OBJECT:
      return kind::object;
    case element_type::STRING:
      return kind::string;
    case element_type::BOOL:
      return kind::boolean;
    case element_type::NULL_VALUE:
      return kind::null;
    default:
      return kind::number;
  }
}

bool value::boolean() const noexcept { return unpacked<element>(is_).get_bool().value_unsafe(); }

namespace {

// The whole number that a double is, as far as each whole number around it has a double.
std::optional<std::int64_t> whole_of(double number) noexcept {
  constexpr double exact_max = 9'007'199'254'740'992;  // 2^53
  if (!(std::abs(number) < exact_max) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::optional<std::int64_t> value::integer() const noexcept {
  std::int64_t result = 0;
  const element is = unpacked<element>(is_);
  if (is.type() == element_type::DOUBLE) return whole_of(number());
  if (is.get(result) != simdjson::SUCCESS) return std::nullopt;
  return result;
}

std::optional<std::uint64_t> value::natural() const noexcept {
  std::uint64_t result = 0;
  const element is = unpacked<element>(is_);
  if (is.type() == element_type::DOUBLE) {
    const std::optional<std::int64_t> whole = whole_of(number());
    if (!whole || *whole < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*whole);
  }
  if (is.get(result) != simdjson::SUCCESS) return std::nullopt;
  return result;
}

double value::number() const noexcept {
  double result = 0;
  return unpacked<element>(is_).get(result) == simdjson::SUCCESS ? result : 0;
}

std::string_view value::text() const noexcept {
  return unpacked<element>(is_).get_string().value_unsafe();
}

std::size_t value::size() const noexcept {
  const element is = unpacked<element>(is_);
  return is.is_array() ? is.get_array().value_unsafe().size()
                       : is.get_object().value_unsafe().size();
}

std::string value::as_json() const { return simdjson::minify(unpacked<element>(is_)); }

elements::elements(const value& array) noexcept
    : at_(packed(unpacked<element>(array.is_).get_array().value_unsafe().begin())),
      end_(packed(unpacked<element>(array.is_).get_array().value_unsafe().end())) {}

std::optional<value> elements::next() noexcept {
  using iterator = simdjson::dom::array::iterator;
  auto at = unpacked<iterator>(at_);
  if (at == unpacked<iterator>(end_)) return std::nullopt;
  value made(packed(*at));
  at_ = packed(++at);
  return made;
}

members::members(const value& object) noexcept
    : at_(packed(unpacked<element>(object.is_).get_object().value_unsafe().begin())),
      end_(packed(unpacked<element>(object.is_).get_object().value_unsafe().end())) {}

std::optional<members::member> members::next() noexcept {
  using iterator = simdjson::dom::object::iterator;
  auto at = unpacked<iterator>(at_);
  if (at == unpacked<iterator>(end_)) return std::nullopt;
  member result{at.key(), value(packed(at.value()))};
  at_ = packed(++at);
  return result;
}

namespace {

void add_path(std::string& path, const place& at) {
  if (at.within == nullptr) return;
  add_path(path, *at.within);
  if (at.member.data() == nullptr) {
    path += "[" + std::to_string(at.index) + "]";
  } else {
    if (!path.empty()) path += ".";
    path += at.member;
  }
}

}  // namespace

void fail(const place& at, std::string_view why) {
  std::string path;
  add_path(path, at);
  throw json_error(std::move(path), why);
}

}  // namespace troupe::json::parts
