// file_options: how router::files() serves the files of a folder.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {

// Answers GET and HEAD with a whole file or one range of it (206, 416). The answers have ETag and
// Last-Modified, which If-None-Match, If-Modified-Since and If-Range are compared with. A request
// for several ranges gets the whole file (200), as RFC 9110 (14.2) allows: sendfile cannot send
// such an answer in one piece, and attackers use such requests to exhaust a server. The type
// follows from the file's name. For a folder the answer is its index; without a '/' at the end, the
// path is redirected to the one with it. Answered 404: files outside of the folder, reached by ".."
// or by a symbolic link; encoded paths with a '/' or a '\' inside a segment; names that begin with
// a dot; everything that is not an ordinary file.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::file_options options;
//     options.cache_control = "max-age=3600";
//     troupe::http::router routes;
//     routes.files("/", "/tmp", options);
struct file_options {
  // The file that represents a folder. Default "index.html"; empty: folders are answered 404.
  std::string index = "index.html";
  // Value of the field Cache-Control. Default empty: no such field.
  std::string cache_control;
  // True: names that begin with a dot are served as well. Default false.
  bool hidden = false;
  // True: where a client takes br, zstd or gzip by its Accept-Encoding, and there is a file of the
  // same name with .br, .zst or .gz behind it, that file is the answer, with Content-Encoding. The
  // one that the client prefers wins, then the first of these three. All answers have Vary then.
  // Ranges and ETag refer to the compressed file. Default false, since each look costs a system
  // call.
  bool precompressed = false;
};

// Answers with `bytes` bytes of an open file from `offset` on, treated as one document: all of it,
// or the range that a GET asks for (206, 416). A request with If-Range gets all of it, since this
// function cannot know whether the document is unchanged. Otherwise as response::file.
response file_response(const request& asked, const file& from, std::uint64_t offset,
                       std::uint64_t bytes, content_type type);

}  // namespace troupe::http
