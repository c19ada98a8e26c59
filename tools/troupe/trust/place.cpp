#include "trust/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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
  for (const auto& folder : std::filesystem::directory_iterator("/run/user", none))
    found.insert(folder.path() / "troupe");
  for (const auto& folder : std::filesystem::directory_iterator("/tmp", none)) {
    if (folder.path().filename().string().starts_with("troupe-")) found.insert(folder.path());
  }
  return found;
}

// The number of a process; 0 for other texts.
int number_of(const std::string& text) {
  int number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = bad == std::errc{} && end == text.data() + text.size() && number > 0;
  return is_number ? number : 0;
}

// The number of a process in the name of its socket; 0 for other files.
int pid_in(const std::filesystem::path& file) {
  return file.extension() == ".sock" ? number_of(file.stem().string()) : 0;
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
  if (is_own) put(fmt::format("troupe: skipped: {}; {}\n", fault->problem, fault->remedy), stderr);
  return std::nullopt;
}

// The process may be one of a container that shares the folder: its number is unknown here, but it
// listens. A listener that is busy does not refuse.
bool is_refused_at(const std::string& path) {
  ::sockaddr_un address;
  if (observe::make_address(path, address)) return false;
  const int stream = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (stream < 0) return false;
  const auto* const at = static_cast<const ::sockaddr*>(static_cast<const void*>(&address));
  const bool is_refused = ::connect(stream, at, sizeof address) != 0 && errno == ECONNREFUSED;
  ::close(stream);
  return is_refused;
}

// Root may run this, and the folder's owner may exchange the folder for a link meanwhile: from the
// check on, the folder is the descriptor and not its name. A new process of that number makes its
// socket anew, so that the file is another one: it is compared again just before the end.
bool remove_socket(const dead_socket& dead) {
  const int folder = ::open(dead.folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return false;
  const std::string folder_path = fmt::format("/proc/self/fd/{}", folder);
  const std::string name = fmt::format("{}.sock", dead.pid);
  struct ::stat before = {}, now = {};
  const bool is_dead = !observe::check_folder(folder_path + "/.", dead.owner) &&
                       ::fstatat(folder, name.c_str(), &before, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISSOCK(before.st_mode) && is_refused_at(folder_path + "/" + name) &&
                       !user_of(dead.pid) &&
                       ::fstatat(folder, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
                       before.st_ino == now.st_ino && before.st_dev == now.st_dev;
  const bool is_removed = is_dead && ::unlinkat(folder, name.c_str(), 0) == 0;
  ::close(folder);
  return is_removed;
}

// Folders in which a process of that user may have its socket. A service of systemd with
// PrivateTmp= has a /tmp of its own, which others see through the process alone.
std::vector<std::string> folders_of(int pid, ::uid_t user) {
  std::vector<std::string> folders{own_folder()};
  const std::string runtime_folder = runtime_folder_of(pid);
  if (runtime_folder.starts_with('/'))
    folders.push_back(observe::socket_folder(runtime_folder.c_str(), user));
  folders.push_back(fmt::format("/run/user/{}/troupe", user));
  folders.push_back(observe::socket_folder(nullptr, user));
  folders.push_back(fmt::format("/proc/{}/root{}", pid, folders.back()));
  return folders;
}

// The socket of a process, if there is one in a folder of its user; `wrong` says why a folder was
// not believed.
std::optional<program_place> place_in(const std::vector<std::string>& folders, int pid,
                                      ::uid_t user, std::string& wrong) {
  for (const std::string& folder : folders) {
    if (!exists(folder)) continue;
    if (const auto fault = observe::check_folder(folder, user)) {
      if (wrong.empty()) wrong = fmt::format("; {}: {}", fault->problem, fault->remedy);
    } else if (std::string socket = socket_in(folder, pid); is_socket(socket)) {
      return program_place{pid, user, std::move(socket)};
    }
  }
  return std::nullopt;
}

// The programs whose folders only their processes name; for root, of all users.
void add_others(found_places& found) {
  std::set<int> known;
  for (const program_place& known_program : found.programs) known.insert(known_program.pid);
  std::error_code none;
  for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
    const int pid = number_of(process.path().filename().string());
    if (pid == 0 || known.contains(pid) || found.programs.size() >= programs_max) continue;
    const std::optional<::uid_t> user = user_of(pid);
    if (!user || (*user != observe::own_user() && observe::own_user() != 0)) continue;
    std::string ignored;
    if (auto place = place_in(folders_of(pid, *user), pid, *user, ignored))
      found.programs.push_back(std::move(*place));
  }
}

}  // namespace

program_place place_of(int pid) {
  const std::optional<::uid_t> user = user_of(pid);
  if (!user)
    throw failure(fmt::format("process {} cannot be asked: there is none of that number", pid));
  std::string wrong;
  if (auto place = place_in(folders_of(pid, *user), pid, *user, wrong)) return std::move(*place);
  throw failure(
      fmt::format("process {} cannot be asked: start the program with TROUPE_OBSERVE=1, as "
                  "the same user{}",
                  pid, wrong));
}

found_places find_places() {
  found_places found;
  for (const std::string& folder : all_folders()) {
    const std::optional<::uid_t> owner = owner_of(folder);
    if (!owner) continue;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
      const int pid = pid_in(file.path());
      if (pid == 0 || !is_socket(file.path())) continue;
      const std::optional<::uid_t> user = user_of(pid);
      if (user == owner && found.programs.size() < programs_max)
        found.programs.push_back({pid, *owner, file.path()});
      if (!user && found.dead.size() < programs_max) found.dead.push_back({pid, *owner, folder});
    }
  }
  add_others(found);
  std::ranges::sort(found.programs, {}, &program_place::pid);
  return found;
}

std::size_t remove_sockets(std::span<const dead_socket> dead) {
  return static_cast<std::size_t>(std::ranges::count_if(dead, remove_socket));
}

}  // namespace troupe_tool
