// file_options: how router::files() gives what lies in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {

// GET and HEAD, whole or one range of it (206, 416), with ETag and Last-Modified, which
// If-None-Match, If-Modified-Since and If-Range are compared with. Who asks for several ranges at
// once is given the whole (200), as RFC 9110 (14.2) allows: an answer in parts cannot be sent by
// sendfile in one piece, and is what one asks for to exhaust a server. The type is told from the
// name. A folder stands for its index, and is redirected to with a '/' at the end. Not found (404)
// is what lies outside of the folder, be it by ".." or by a symbolic link; what is encoded so that
// it has a '/' or a '\' in it; names that begin with a point; and all that is no ordinary file.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::file_options options;
//     options.cache_control = "max-age=3600";
//     troupe::http::router routes;
//     routes.files("/", "/tmp", options);
struct file_options {
  // Of a folder. Default "index.html"; empty: folders have none.
  std::string index = "index.html";
  // Of the field Cache-Control. Default empty: there is no such field.
  std::string cache_control;
  // Names that begin with a point are given, too. Default false.
  bool hidden = false;
};

// So many bytes of an open file from `offset` on, as one thing: all of it, or the range of it that
// a GET asks for (206, 416). Who asks for a range of what is still the same (If-Range) is given all
// of it: whether it is, is not known here. The rest as response::file.
response file_response(const request& asked, const file& from, std::uint64_t offset,
                       std::uint64_t bytes, std::string_view type);

}  // namespace troupe::http
