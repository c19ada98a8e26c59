#include "io/service/variables.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "troupe/base/error.hpp"

namespace troupe::service {
namespace {

std::optional<int> number_in(std::string_view text) {
  int made = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, made);
  if (bad != std::errc{} || rest != end || made < 0) return std::nullopt;
  return made;
}

// The text up to the separator, which is cut off.
std::string_view take_part(std::string_view& of, char separator) {
  const std::size_t at = std::min(of.find(separator), of.size());
  const std::string_view part = of.substr(0, at);
  of.remove_prefix(std::min(at + 1, of.size()));
  return part;
}

[[noreturn]] void refuse(const char* name, std::string_view value) {
  throw option_error(std::string("troupe: ") + name + "=\"" + std::string(value) +
                     "\" in the environment is malformed");
}

}  // namespace

std::string predecessor::to_string() const {
  return std::to_string(id) + " " + std::to_string(ready_fd) + " " + files;
}

std::optional<predecessor> predecessor::parse(std::string_view text) {
  const std::optional<int> id = number_in(take_part(text, ' '));
  const std::optional<int> fd = number_in(take_part(text, ' '));
  if (!id || !fd || text.find_first_not_of("01") != std::string_view::npos) return std::nullopt;
  return predecessor{*id, *fd, std::string(text)};
}

std::optional<passed> read_variables(const variables& of, pid_t own, pid_t parent) {
  if (of.fds == nullptr) return std::nullopt;
  passed made;
  if (of.predecessor != nullptr) {
    made.from = predecessor::parse(of.predecessor);
    if (!made.from) refuse("TROUPE_PREDECESSOR", of.predecessor);
    if (made.from->id != parent) return std::nullopt;
  } else {
    if (of.pid == nullptr) return std::nullopt;
    const std::optional<int> meant = number_in(of.pid);
    if (!meant) refuse("LISTEN_PID", of.pid);
    if (*meant != own) return std::nullopt;
  }
  const std::optional<int> count = number_in(of.fds);
  if (!count || *count > sockets_most) refuse("LISTEN_FDS", of.fds);
  std::string_view names = of.names == nullptr ? std::string_view() : of.names;
  for (int i = 0; i < *count; ++i) made.names.emplace_back(take_part(names, ':'));
  if (made.from && made.from->files.size() != made.names.size())
    refuse("TROUPE_PREDECESSOR", of.predecessor);
  return made;
}

}  // namespace troupe::service
