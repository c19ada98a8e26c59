// compress: a function behind handlers that makes their answers smaller.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>

#include "troupe/http/around/around.hpp"

namespace troupe::http {

// Compresses answers by the coding that the request's Accept-Encoding prefers: brotli, zstd or gzip
// (in this order, if it prefers none of them; brotli and zstd if the library was built with them).
// It compresses texts and text-like types (JSON, XML, JavaScript, SVG, WebAssembly), in whole and
// in streamed bodies; each piece of a streamed body can be decoded when it arrives. The answer gets
// Content-Encoding and "Vary: Accept-Encoding", and its ETag becomes a weak one.
//
// Answers are unchanged if they are files (see file_options::precompressed) or parts of one (206,
// Content-Range), if they have a Content-Encoding, or if their Cache-Control says no-transform. Put
// request_id and access_log in front of it, which then see the bytes that are sent. Do not compress
// an answer that contains both a secret and data that an attacker can choose (BREACH).
//
// Cost: the time of the compression on the handler's thread (see `bytes_max`); an encoder for each
// thread and coding is kept, at most 1.3 MiB a thread, and a streamed answer has one of its own, of
// up to 672 KiB, which counts as kept for its client: if there is no space
// (server_options::buffer_bytes), the answer is sent uncompressed.
//
// Example:
//     #include <troupe/http/router.hpp>
//     troupe::http::router routes;
//     routes.get("/", [] { return troupe::http::response::text(std::string(10'000, 'a')); });
//     routes.around(troupe::http::compress());
struct compress {
  // Minimum bytes of a whole body. Default 1,024, since compressing a smaller body hardly saves a
  // packet. Smaller bodies are sent uncompressed, unless the request excludes that (identity;q=0).
  std::size_t bytes_min = 1'024;
  // Maximum bytes of a whole body. Default 1 MiB, which takes about 20 ms; larger bodies are sent
  // uncompressed.
  std::size_t bytes_max = 1024 * 1024;
  void operator()(const request& asked, response& answer) const;
};

}  // namespace troupe::http
