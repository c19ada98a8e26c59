#include "troupe/nats/message.hpp"

#include <algorithm>
#include <charconv>

#include "troupe/nats/error.hpp"

namespace troupe::nats {
namespace {

constexpr std::string_view version = "NATS/1.0", line_end = "\r\n";

bool is_name(std::string_view name) noexcept {
  const auto fits = [](char letter) { return letter > ' ' && letter < 0x7f && letter != ':'; };
  return !name.empty() && std::ranges::all_of(name, fits);
}
bool is_value(std::string_view value) noexcept {
  return value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

void check_field(std::string_view name, std::string_view value) {
  if (!is_name(name))
    throw error(failure::bad_subject,
                "troupe: nats: the name of a header is empty, or has a colon, a space or a control "
                "character");
  if (!is_value(value))
    throw error(failure::bad_subject, "troupe: nats: the value of the header " + std::string(name) +
                                          " has a line end or a zero byte");
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

void headers::add(std::string_view name, std::string_view value) {
  check_field(name, value);
  fields_.emplace_back(name, value);
}
void headers::set(std::string_view name, std::string_view value) {
  check_field(name, value);
  const std::string kept(name);  // may be a view of the removed field
  std::string given(value);
  remove(kept);
  fields_.emplace_back(kept, std::move(given));
}
void headers::remove(std::string_view name) noexcept {
  std::erase_if(fields_, [&](const field& entry) { return entry.first == name; });
}
std::optional<std::string_view> headers::get(std::string_view name) const noexcept {
  for (const field& entry : fields_) {
    if (entry.first == name) return entry.second;
  }
  return std::nullopt;
}

void headers::append_to(std::string& out) const {
  out += version;
  out += line_end;
  for (const field& entry : fields_) {
    out += entry.first;
    out += ": ";
    out += entry.second;
    out += line_end;
  }
  out += line_end;
}
std::size_t headers::block_bytes() const noexcept {
  std::size_t bytes = version.size() + 2 * line_end.size();
  for (const field& entry : fields_) bytes += entry.first.size() + entry.second.size() + 4;
  return bytes;
}

// Other clients wrote it: text that is no header is left out, and harms nothing else.
headers headers::parse(std::string_view block) {
  headers parsed;
  std::size_t end = block.find(line_end);
  if (!block.starts_with(version) || end == std::string_view::npos) {
    parsed.damaged_ = true;
    return parsed;
  }
  const std::string_view status = trimmed(block.substr(version.size(), end - version.size()));
  if (!status.empty()) {
    const std::string_view digits = status.substr(0, 3);
    const auto [rest, failed] =
        std::from_chars(digits.data(), digits.data() + digits.size(), parsed.status_);
    if (failed != std::errc() || rest != digits.data() + digits.size() || digits.size() != 3)
      parsed.damaged_ = true;
    else
      parsed.description_ = trimmed(status.substr(3));
  }
  for (block.remove_prefix(end + 2);; block.remove_prefix(end + 2)) {
    end = block.find(line_end);
    if (end == 0 && block.size() == 2) return parsed;
    if (end == std::string_view::npos || end == 0) {
      parsed.damaged_ = true;
      return parsed;
    }
    const std::string_view line = block.substr(0, end);
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    const std::string_view value =
        colon == std::string_view::npos ? "" : trimmed(line.substr(colon + 1));
    if (colon != std::string_view::npos && is_name(name) && is_value(value))
      parsed.fields_.emplace_back(name, value);
    else
      parsed.damaged_ = true;
  }
}

}  // namespace troupe::nats
