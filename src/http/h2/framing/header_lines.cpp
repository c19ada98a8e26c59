#include "http/h2/framing/header_lines.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe::http::h2 {

void header_lines::add(std::string_view name, std::string_view value) {
  const auto name_at = static_cast<std::uint32_t>(text_.size());
  text_ += name;
  for (std::size_t at = name_at; at < text_.size(); ++at) {
    if (text_[at] >= 'A' && text_[at] <= 'Z') text_[at] = static_cast<char>(text_[at] | 0x20);
  }
  const auto value_at = static_cast<std::uint32_t>(text_.size());
  text_ += value;
  positions_.push_back({name_at, static_cast<std::uint32_t>(name.size()), value_at,
                        static_cast<std::uint32_t>(value.size())});
}

void header_lines::add_lines(std::string_view lines) {
  constexpr std::string_view refused[] = {"Connection", "Keep-Alive", "Proxy-Connection",
                                          "Transfer-Encoding", "Upgrade"};
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find("\r\n"));
    const std::string_view name = take_field_name(lines);
    if (std::ranges::any_of(refused, [&](auto banned) { return same_word(banned, name); }))
      continue;
    std::string_view value = line.substr(std::min(name.size() + 1, line.size()));
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    add(name, value);
  }
}

}  // namespace troupe::http::h2
