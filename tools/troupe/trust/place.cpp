#include "trust/place.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "observe/sockets/observation_socket.hpp"
#include "trust/failure.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

namespace observe = troupe::observe;

constexpr std::size_t programs_max = 1000;

// The user whose files the process makes, as the kernel says; nothing if there is no such process.
std::optional<::uid_t> user_of(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    unsigned long real = 0, effective = 0;
    if (std::sscanf(line.c_str(), "Uid: %lu %lu", &real, &effective) == 2)
      return static_cast<::uid_t>(effective);
  }
  return std::nullopt;
}

// XDG_RUNTIME_DIR of a process whose environment this user may read.
std::string runtime_folder_of(int pid) {
  constexpr std::size_t bytes_max = std::size_t{1} << 20;
  constexpr std::string_view name = "XDG_RUNTIME_DIR=";
  std::ifstream environment(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  std::string variable;
  for (std::size_t read = 0; read < bytes_max && std::getline(environment, variable, '\0');
       read += variable.size() + 1) {
    if (variable.starts_with(name)) return variable.substr(name.size());
  }
  return "";
}

std::string own_folder() {
  return observe::socket_folder(std::getenv("XDG_RUNTIME_DIR"), observe::own_user());
}

std::string socket_in(const std::string& folder, int pid) {
  return fmt::format("{}/{}.sock", folder, pid);
}

bool is_socket(const std::string& path) {
  struct ::stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

bool exists(const std::string& path) {
  struct ::stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Folders that may have sockets. Root looks at those of all users.
std::set<std::string> all_folders() {
  std::set<std::string> found{own_folder(), observe::socket_folder(nullptr, observe::own_user())};
  if (observe::own_user() != 0) return found;
  std::error_code none;
  for (const auto& one : std::filesystem::directory_iterator("/run/user", none))
    found.insert(one.path() / "troupe");
  for (const auto& one : std::filesystem::directory_iterator("/tmp", none)) {
    if (one.path().filename().string().starts_with("troupe-")) found.insert(one.path());
  }
  return found;
}

// The number of a process in the name of its socket; 0 for other files.
int pid_in(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  int pid = 0;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool is_number = bad == std::errc{} && end == name.data() + name.size() && pid > 0;
  return is_number && file.extension() == ".sock" ? pid : 0;
}

// The owner of a folder that its owner alone may enter.
std::optional<::uid_t> owner_of(const std::string& folder) {
  struct ::stat status = {};
  if (::lstat(folder.c_str(), &status) != 0) return std::nullopt;
  // Its own folder must be this user's; another user's folder is looked at by root alone.
  const bool is_own =
      folder == own_folder() || folder == observe::socket_folder(nullptr, observe::own_user());
  const ::uid_t owner = is_own ? observe::own_user() : status.st_uid;
  const auto fault = observe::check_folder(folder, owner);
  if (!fault) return owner;
  if (is_own) put(fmt::format("troupe: skipped: {}; {}\n", fault->what, fault->remedy), stderr);
  return std::nullopt;
}

}  // namespace

program_place place_of(int pid) {
  const std::optional<::uid_t> user = user_of(pid);
  if (!user)
    throw failure(fmt::format("process {} cannot be asked: there is none of that number", pid));
  const std::string its_runtime_folder = runtime_folder_of(pid);
  std::string tried, wrong;
  for (const std::string& folder :
       {own_folder(),
        its_runtime_folder.starts_with('/')
            ? observe::socket_folder(its_runtime_folder.c_str(), *user)
            : own_folder(),
        fmt::format("/run/user/{}/troupe", *user), observe::socket_folder(nullptr, *user)}) {
    if (!exists(folder)) continue;
    if (const auto fault = observe::check_folder(folder, *user)) {
      if (wrong.empty()) wrong = fmt::format("; {}: {}", fault->what, fault->remedy);
    } else if (const std::string socket = socket_in(folder, pid); is_socket(socket)) {
      return {pid, *user, socket};
    }
  }
  throw failure(
      fmt::format("process {} cannot be asked: start the program with TROUPE_OBSERVE=1, as "
                  "the same user{}",
                  pid, wrong));
}

std::vector<program_place> all_places() {
  std::vector<program_place> found;
  for (const std::string& folder : all_folders()) {
    const std::optional<::uid_t> owner = owner_of(folder);
    if (!owner) continue;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
      const int pid = pid_in(file.path());
      if (pid == 0 || found.size() == programs_max) continue;
      if (user_of(pid) == owner && is_socket(file.path()))
        found.push_back({pid, *owner, file.path()});
    }
  }
  std::ranges::sort(found, {}, &program_place::pid);
  return found;
}

}  // namespace troupe_tool
