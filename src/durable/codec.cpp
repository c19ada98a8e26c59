#include "troupe/durable/codec.hpp"

#include <algorithm>
#include <limits>

namespace troupe::durable {

void parts::refuse(const char* why) {
  throw decode_error("troupe: durable: " + std::string(why) +
                     "; the bytes are damaged, or of another type");
}

void writer::count(std::size_t size) {
  if (size > std::numeric_limits<std::uint32_t>::max())
    throw usage_error("troupe: durable: a container has more than 4,294,967,295 elements");
  number(static_cast<std::uint32_t>(size));
}

void reader::take(std::span<std::byte> into) {
  if (into.size() > rest_.size()) parts::refuse("the bytes end too early");
  std::ranges::copy(rest_.first(into.size()), into.begin());
  rest_ = rest_.subspan(into.size());
}

std::size_t reader::count() {
  const std::size_t size = number<std::uint32_t>();
  if (size > rest_.size()) parts::refuse("a count is larger than what follows it");
  return size;
}

void reader::check_end() const {
  if (!rest_.empty()) parts::refuse("bytes follow the value");
}

namespace parts {
namespace {

bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

// Takes the text up to that letter, which follows.
std::string_view take_until(std::string_view& from, char letter) noexcept {
  const std::string_view taken = from.substr(0, from.find(letter));
  from.remove_prefix(taken.size());
  return taken;
}

bool has_enumerator(std::string_view list, std::string_view wanted) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == wanted) return true;
    if (!list.empty()) list.remove_prefix(1);
  }
  return false;
}

// Both lists begin behind "enum TYPE{", and are taken.
bool keeps_enumerators(std::string_view& now, std::string_view& before) noexcept {
  const std::string_view all = take_until(now, '}');
  std::string_view former = take_until(before, '}');
  while (!former.empty()) {
    if (!has_enumerator(all, take_until(former, ','))) return false;
    if (!former.empty()) former.remove_prefix(1);
  }
  return true;
}

}  // namespace

std::string alternative_name(std::string_view type) {
  type = type.substr(0, type.find('<'));
  const std::size_t colon = type.rfind(':');
  if (colon != std::string_view::npos) type.remove_prefix(colon + 1);
  std::string_view stem = type;
  while (!stem.empty() && is_digit(stem.back())) stem.remove_suffix(1);
  if (stem.size() == type.size()) return std::string(type);
  for (const std::string_view mark : {"_v", "_V", "V"}) {
    if (stem.size() > mark.size() && stem.ends_with(mark))
      return std::string(stem.substr(0, stem.size() - mark.size()));
  }
  return std::string(type);
}

bool reads_shape(std::string_view now, std::string_view before) noexcept {
  constexpr std::string_view word = "enum ";
  while (!now.empty() && !before.empty()) {
    const bool is_enum = now.starts_with(word) && before.starts_with(word);
    if (now.front() != before.front()) return false;
    if (!is_enum) {
      now.remove_prefix(1);
      before.remove_prefix(1);
      continue;
    }
    if (take_until(now, '{') != take_until(before, '{')) return false;
    if (now.empty() || before.empty()) break;
    now.remove_prefix(1);
    before.remove_prefix(1);
    if (!keeps_enumerators(now, before)) return false;
  }
  return now.empty() && before.empty();
}

}  // namespace parts

std::uint64_t fingerprint_of(std::string_view shape) noexcept {
  std::uint64_t hash = 14'695'981'039'346'656'037u;
  for (const char one : shape) {
    hash ^= static_cast<unsigned char>(one);
    hash *= 1'099'511'628'211u;
  }
  return hash;
}

}  // namespace troupe::durable
