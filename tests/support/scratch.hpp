// scratch: a folder for one test, which is removed when the object is destroyed; and the folder of
// the sources, for files that tests read.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace troupe::test {

class scratch {
 public:
  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const char* name) const { return path_ + "/" + name; }
  // Writes a file with this text and returns its path.
  std::string put(const char* name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

// The folder of all sources, as ctest says, or the current one. __FILE__ is no way there: the
// compiler cache may have the program's objects from another checkout.
inline std::filesystem::path source_folder() {
  const char* const set = std::getenv("TROUPE_SOURCE_DIR");
  return set == nullptr ? "." : set;
}

}  // namespace troupe::test
