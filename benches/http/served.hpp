// served: the content that servers serve, in a temporary folder: 50,000 small files, or a
// certificate, its key, and one large file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "../server_process.hpp"

namespace load {

// The folder is in memory where the system has a place for that. The speed of a disk is not the
// question, and writing 50,000 files to a disk takes longer than asking for them.
class temporary_folder {
 public:
  temporary_folder() {
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory =
        std::filesystem::is_directory(memory) && ::access(memory.c_str(), W_OK) == 0;
    std::string name =
        ((in_memory ? memory : std::filesystem::temp_directory_path()) / "troupe_bench_XXXXXX")
            .string();
    if (::mkdtemp(name.data()) == nullptr) fail(name);
    path_ = name;
  }
  temporary_folder(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) fail(path);
}

inline std::string letters(std::size_t count) {
  std::string text(count, '\0');
  std::uint32_t state = 1;
  for (char& one : text)
    one = static_cast<char>('a' + ((state = state * 1'103'515'245 + 12'345) >> 16) % 26);
  return text;
}

// Files of 256 to 4,096 bytes, 200 in each of 250 folders. No two neighbours have the same bytes.
class small_files {
 public:
  static constexpr std::size_t count = 50'000, per_folder = 200;

  void write_to(const std::string& folder) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (i % per_folder == 0)
        std::filesystem::create_directories(folder + "/d" + std::to_string(i / per_folder));
      write_file(folder + path(i), body(i));
    }
  }
  static std::string path(std::size_t i) {
    return "/d" + std::to_string(i / per_folder) + "/f" + std::to_string(i) + ".txt";
  }
  std::string_view body(std::size_t i) const {
    return std::string_view(text_).substr(i % 4'001, 256 + (i * 2'654'435'761u >> 16) % 3'841);
  }

 private:
  std::string text_ = letters(4'001 + 4'096);
};

// Writes certificate.pem and key.pem: an elliptic curve (P-256), signed by itself.
inline void write_certificate(const std::string& folder) {
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "
      "/CN=localhost"
      " -keyout " +
      folder + "/key.pem -out " + folder + "/certificate.pem 2>" + folder + "/openssl.log";
  if (std::system(command.c_str()) != 0) refuse("openssl makes no certificate");
}

}  // namespace load
