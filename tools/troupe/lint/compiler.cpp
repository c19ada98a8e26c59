#include "lint/compiler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "trust/failure.hpp"

namespace troupe_tool {
namespace {

namespace fs = std::filesystem;
constexpr int clang_version_min = 22, clang_version_max = 40;

// A file without a name, which takes what a child prints.
class captured {
 public:
  captured() : descriptor_(::memfd_create("troupe lint", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw failure(fmt::format("no memory file: {}", std::strerror(errno)));
  }
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
  ~captured() { ::close(descriptor_); }

  int descriptor() const noexcept { return descriptor_; }
  std::string text() const {
    std::string text;
    std::array<char, 65536> part;
    ::lseek(descriptor_, 0, SEEK_SET);
    for (;;) {
      const ::ssize_t count = ::read(descriptor_, part.data(), part.size());
      if (count <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  int descriptor_;
};

bool exists_in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string file = fmt::format("{}/{}", rest.substr(0, end), name);
    if (::access(file.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// The words of a shell's command line, as compile_commands.json has them.
std::vector<std::string> words_of(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
      begun = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      begun = true;
    } else if (c == ' ' || c == '\t') {
      if (begun) words.push_back(std::exchange(word, {}));
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

bool takes_value(std::string_view flag) {
  constexpr std::array names{"-I",        "-D",         "-U",       "-isystem",
                             "-iquote",   "-idirafter", "-include", "-imacros",
                             "-isysroot", "--sysroot",  "-x"};
  return std::ranges::find(names, flag) != names.end();
}

// What decides on the meaning of a source, and is known to both compilers.
bool is_kept(std::string_view flag) {
  constexpr std::array starts{"-I",
                              "-D",
                              "-U",
                              "-isystem",
                              "-iquote",
                              "-idirafter",
                              "-include",
                              "-imacros",
                              "-isysroot",
                              "--sysroot",
                              "-std=",
                              "-stdlib=",
                              "-pthread",
                              "-nostdinc",
                              "-m32",
                              "-m64",
                              "-march=",
                              "-fno-exceptions",
                              "-fno-rtti",
                              "-fexceptions",
                              "-fshort-enums",
                              "-funsigned-char",
                              "-fsigned-char"};
  return std::ranges::any_of(starts, [flag](const char* start) { return flag.starts_with(start); });
}

std::vector<std::string> kept_flags(const std::vector<std::string>& command) {
  std::vector<std::string> flags;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const bool value = takes_value(command[i]) && i + 1 < command.size();
    // CMake's precompiled header is the other compiler's: its source is in the same place.
    if (is_kept(command[i])) flags.push_back(command[i]);
    if (value && is_kept(command[i])) flags.push_back(command[i + 1]);
    if (value || command[i] == "-o" || command[i] == "-MF" || command[i] == "-MT") ++i;
  }
  return flags;
}

fs::path real(const fs::path& path) {
  std::error_code ignored;
  const fs::path found = fs::weakly_canonical(path, ignored);
  return ignored ? path : found;
}

std::string first_error(std::string_view errors) {
  std::string said;
  int lines = 0;
  while (!errors.empty() && lines < 5) {
    const std::size_t end = std::min(errors.find('\n'), errors.size());
    const std::string_view line = errors.substr(0, end);
    if (line.contains("error:")) said += fmt::format("\n  {}", line), ++lines;
    errors.remove_prefix(std::min(end + 1, errors.size()));
  }
  return said;
}

}  // namespace

child_result run_child(const std::vector<std::string>& command) {
  captured output, errors;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  ::pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw failure(fmt::format("{} cannot be started: {}", command[0], std::strerror(failed)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, output.text(), errors.text()};
}

std::string find_clang_query() {
  for (int version = clang_version_min; version < clang_version_max; ++version) {
    std::string name = fmt::format("clang-query-{}", version);
    if (exists_in_path(name)) return name;
  }
  throw failure(
      fmt::format("clang-query-{0} is not installed: apt-get install clang-tools-{0} clang-{0}",
                  clang_version_min));
}

compile_flags flags_of_database(const std::string& folder, const std::string& file) {
  const fs::path path = fs::path(folder) / "compile_commands.json";
  std::ifstream stream(path);
  if (!stream)
    throw failure(
        fmt::format("{} cannot be read; CMake writes it with "
                    "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                    path.string()));
  const auto database = nlohmann::json::parse(stream, nullptr, false);
  if (!database.is_array()) throw failure(fmt::format("{} is no list of commands", path.string()));
  const fs::path wanted = real(fs::absolute(file));
  for (const auto& entry : database) {
    const std::string where = entry.value("directory", "");
    if (real(fs::path(where) / entry.value("file", "")) != wanted) continue;
    const auto arguments = entry.value("arguments", std::vector<std::string>());
    return {where,
            kept_flags(arguments.empty() ? words_of(entry.value("command", "")) : arguments)};
  }
  throw failure(fmt::format("{} is not in {}; give its flags: troupe lint {} -- FLAGS", file,
                            path.string(), file));
}

std::vector<std::string> flags_of_installation() {
  std::error_code ignored;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  if (fs::exists(prefix / "include/troupe/troupe.hpp", ignored))
    return {"-I" + (prefix / "include").string()};
  if (exists_in_path("pkg-config")) {
    const child_result asked = run_child({"pkg-config", "--cflags", "troupe"});
    std::string line = asked.output;
    std::ranges::replace(line, '\n', ' ');
    if (asked.status == 0) return words_of(line);
  }
  throw failure(
      "troupe's headers are not found: set PKG_CONFIG_PATH, or name a build with -p, or "
      "flags behind --");
}

std::string dump_coroutines(const std::string& clang_query, const std::string& file,
                            const compile_flags& with) {
  std::vector<std::string> command{clang_query,
                                   "--use-color=false",
                                   "-c",
                                   "set output detailed-ast",
                                   "-c",
                                   "set bind-root false",
                                   "-c",
                                   R"(match functionDecl(unless(isExpansionInSystemHeader()),
           unless(isExpansionInFileMatching("/include/troupe/")),
           hasBody(stmt(hasDescendant(
               expr(anyOf(coawaitExpr(), dependentCoawaitExpr(), coyieldExpr()))))))
           .bind("f"))",
                                   fs::absolute(file).string(),
                                   "--"};
  std::ranges::replace(command[7], '\n', ' ');
  const auto is_standard = [](const std::string& flag) { return flag.starts_with("-std="); };
  if (std::ranges::none_of(with.flags, is_standard)) command.push_back("-std=c++23");
  if (file.ends_with(".hpp") || file.ends_with(".h") || file.ends_with(".hh"))
    command.insert(command.end(), {"-x", "c++", "-Wno-pragma-once-outside-header"});
  command.insert(command.end(), with.flags.begin(), with.flags.end());
  command.push_back("-w");
  if (!with.folder.empty()) {
    command.push_back("-working-directory");
    command.push_back(with.folder);
  }
  const child_result ended = run_child(command);
  if (ended.status != 0 || ended.errors.contains("error:"))
    throw failure(
        fmt::format("{} does not compile with these flags:{}", file, first_error(ended.errors)));
  return ended.output;
}

}  // namespace troupe_tool
