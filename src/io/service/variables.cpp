#include "io/service/variables.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "troupe/base/error.hpp"

namespace troupe::service {
namespace {

std::optional<int> number_in(std::string_view text) {
  int result = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, result);
  if (bad != std::errc{} || rest != end || result < 0) return std::nullopt;
  return result;
}

// The text up to the separator, which is cut off.
std::string_view take_part(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
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

std::optional<passed> read_variables(const variables& variables, pid_t own, pid_t parent) {
  if (variables.fds == nullptr) return std::nullopt;
  passed passed;
  if (variables.predecessor != nullptr) {
    passed.from = predecessor::parse(variables.predecessor);
    if (!passed.from) refuse("TROUPE_PREDECESSOR", variables.predecessor);
    if (passed.from->id != parent) return std::nullopt;
  } else {
    if (variables.pid == nullptr) return std::nullopt;
    const std::optional<int> meant = number_in(variables.pid);
    if (!meant) refuse("LISTEN_PID", variables.pid);
    if (*meant != own) return std::nullopt;
  }
  const std::optional<int> count = number_in(variables.fds);
  if (!count || *count > sockets_most) refuse("LISTEN_FDS", variables.fds);
  std::string_view names = variables.names == nullptr ? std::string_view() : variables.names;
  for (int i = 0; i < *count; ++i) passed.names.emplace_back(take_part(names, ':'));
  if (passed.from && passed.from->files.size() != passed.names.size())
    refuse("TROUPE_PREDECESSOR", variables.predecessor);
  return passed;
}

}  // namespace troupe::service
