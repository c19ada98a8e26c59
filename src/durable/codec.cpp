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

std::uint64_t fingerprint_of(std::string_view shape) noexcept {
  std::uint64_t hash = 14'695'981'039'346'656'037u;
  for (const char one : shape) {
    hash ^= static_cast<unsigned char>(one);
    hash *= 1'099'511'628'211u;
  }
  return hash;
}

}  // namespace troupe::durable
