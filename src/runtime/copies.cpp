#include "runtime/copies.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::copies {
namespace {

constexpr std::uint64_t is_there = 1, checked = 2, sanitized = 4;
constexpr unsigned major_shift = 48, minor_shift = 32, patch_shift = 16;

constexpr std::uint16_t at(std::uint64_t word, unsigned shift) noexcept {
  return static_cast<std::uint16_t>(word >> shift);
}

}  // namespace

build build::here() noexcept {
  constexpr std::string_view version = TROUPE_VERSION;
  build result{.is_checked = TROUPE_CHECKED != 0,
               .is_sanitized = TROUPE_SANITIZED_THREAD != 0 || TROUPE_PLAIN_BLOCKS != 0};
  const char* from = version.data();
  const char* const end = from + version.size();
  for (std::uint16_t* number : {&result.major, &result.minor, &result.patch}) {
    from = std::from_chars(from, end, *number).ptr;
    if (from != end) ++from;
  }
  return result;
}

std::uint64_t build::word() const noexcept {
  return std::uint64_t{major} << major_shift | std::uint64_t{minor} << minor_shift |
         std::uint64_t{patch} << patch_shift | is_there | (is_checked ? checked : 0) |
         (is_sanitized ? sanitized : 0);
}

build build::of(std::uint64_t word) noexcept {
  return {at(word, major_shift), at(word, minor_shift), at(word, patch_shift),
          (word & checked) != 0, (word & sanitized) != 0};
}

std::string build::text() const {
  std::string version = std::to_string(major);
  (version += '.') += std::to_string(minor);
  (version += '.') += std::to_string(patch);
  if (is_checked) version += ", checked";
  if (is_sanitized) version += ", for a sanitizer";
  return version;
}

void check() {
  const std::uint64_t own = build::here().word();
  std::uint64_t seen = 0;
  // order: relaxed (both)  only compared
  if (first.compare_exchange_strong(seen, own, std::memory_order_relaxed,
                                    std::memory_order_relaxed) ||
      seen == own)
    return;
  throw usage_error("troupe: two builds of the library are in this process and share objects: " +
                    build::of(seen).text() + "; and " + build::here().text() +
                    ". Use one build for both, or hide the names of one build: link it with "
                    "-Wl,--exclude-libs,ALL");
}

}  // namespace troupe::copies
