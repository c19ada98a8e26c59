#include "new_project/new_project.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "new_project/templates.hpp"
#include "trust/failure.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t name_length_max = 64;

// Targets that CMake and CTest make themselves, and folders that they make in the build.
constexpr std::array<std::string_view, 18> reserved_names{
    "all",           "ALL_BUILD", "CMakeFiles", "clean",   "edit_cache", "help",
    "INSTALL",       "install",   "PACKAGE",    "package", "preinstall", "package_source",
    "rebuild_cache", "RUN_TESTS", "src",        "test",    "Testing",    "ZERO_CHECK"};

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

bool may_be_in_name(char letter) {
  return is_letter(letter) || (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

void check_name(const std::string& name) {
  if (name.empty() || name.size() > name_length_max || !is_letter(name.front()) ||
      !std::ranges::all_of(name, may_be_in_name)) {
    throw failure(
        fmt::format("'{}' cannot be the name of a project: begin with a letter, and use at most {} "
                    "letters, digits, _ and -",
                    name, name_length_max));
  }
  if (std::ranges::find(reserved_names, name) != reserved_names.end())
    throw failure(
        fmt::format("'{}' cannot be the name of a project, since CMake uses it: "
                    "choose another name",
                    name));
}

void check_folder(const std::string& name) {
  std::error_code wrong;
  const fs::file_status found = fs::symlink_status(name, wrong);
  if (found.type() == fs::file_type::not_found) return;
  if (!fs::is_directory(name, wrong))
    throw failure(fmt::format("{} exists and is no folder: choose another name", name));
  const bool is_empty = fs::is_empty(name, wrong);
  if (wrong) throw failure(fmt::format("the folder {} cannot be read: {}", name, wrong.message()));
  if (!is_empty)
    throw failure(
        fmt::format("the folder {} has files, which are left as they are: choose another "
                    "name, or empty the folder first",
                    name));
}

std::string filled(std::string_view text,
                   const std::array<std::pair<std::string_view, std::string_view>, 3>& values) {
  std::string result(text);
  for (const auto& [token, value] : values) {
    for (std::size_t at = 0; (at = result.find(token, at)) != std::string::npos; at += value.size())
      result.replace(at, token.size(), value);
  }
  return result;
}

[[noreturn]] void cannot_write(const fs::path& path, const std::string& folder, int error) {
  throw failure(
      fmt::format("{} cannot be written: {}. The project is not complete: delete the "
                  "folder {} and try again",
                  path.string(), std::strerror(error), folder));
}

void write_new(const fs::path& path, const std::string& folder, std::string_view text) {
  std::error_code wrong;
  fs::create_directories(path.parent_path(), wrong);
  if (wrong) cannot_write(path.parent_path(), folder, wrong.value());
  std::FILE* const file = std::fopen(path.c_str(), "wbx");  // x: an existing file is an error
  if (file == nullptr) cannot_write(path, folder, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) cannot_write(path, folder, written ? errno : error);
  if (path.extension() == ".sh" && chmod(path.c_str(), 0755) != 0)
    cannot_write(path, folder, errno);
}

std::string_view text_of(std::string_view kind, std::string_view path) {
  for (const template_file& file : templates()) {
    if (file.kind == kind && file.path == path) return file.text;
  }
  return "";
}

}  // namespace

void make_project(const new_choices& chosen) {
  const std::string& name = chosen.name;
  check_name(name);
  check_folder(name);
  const std::string_view kind = chosen.http      ? "http"
                                : chosen.durable ? "durable"
                                : chosen.cluster ? "cluster"
                                                 : "plain";
  constexpr std::string_view about = "about.md";  // a part of README.md
  for (const template_file& file : templates()) {
    if ((file.kind != "common" && file.kind != kind) || file.path == about) continue;
    const std::string text = filled(file.text, {{{"%ABOUT%", text_of(kind, about)},
                                                 {"%COMPONENT%", kind == "plain" ? "troupe" : kind},
                                                 {"%NAME%", name}}});
    write_new(fs::path(name) / file.path, name, text);
  }
  print_line(fmt::format("{} is ready. Build it and run its test:", name));
  print_line(fmt::format("  cd {} && cmake --workflow --preset debug", name));
  print_line(fmt::format("{}/README.md says how to run it.", name));
}

}  // namespace troupe_tool
