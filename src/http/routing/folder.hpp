// folder: an open folder, whose files a route serves.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>

#include "troupe/http/files.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {

struct folder {
  folder(int open, const file_options& chosen) : fd(open), options(chosen) {}
  folder(const folder&) = delete;
  ~folder() { ::close(fd); }
  const int fd;
  const file_options options;
};

// Throws io_error.
std::shared_ptr<const folder> open_folder(const std::string& path, const file_options& options);

// The answer to a request of the file `rest` of the folder; 404 if there is none that may be seen.
response find_file(const folder& root, const request& asked, std::string_view rest);

}  // namespace troupe::http
