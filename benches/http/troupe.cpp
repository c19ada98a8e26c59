// Our HTTP server, on one worker.
//
// bench_http MEMORY BENCH FOLDER. MEMORY is for /json: "context", the request's own, or "malloc".
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "troupe/http/around/compress.hpp"
#include "troupe/http/files.hpp"
#include "troupe/http/server.hpp"
#include "troupe/troupe.hpp"

namespace {

using troupe::http::response;

// Two handlers that differ only in the memory of their containers. Those of the first one are freed
// with the request, without being destroyed one by one.
response json_in_context() {
  troupe::context& memory = troupe::this_context();
  auto fields = memory.make<std::pmr::map<std::pmr::string, std::pmr::string>>();
  auto numbers = memory.make<std::pmr::vector<int>>();
  auto text = memory.make<std::pmr::string>();
  load::write_document(*fields, *numbers, *text);
  return response::view(*text, "application/json");
}

response json_by_malloc() {
  std::map<std::string, std::string> fields;
  std::vector<int> numbers;
  std::string text;
  load::write_document(fields, numbers, text);
  return response::json(std::move(text));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

troupe::task<> serve(troupe::http::server web) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::printf("%d\n", listener.local().port());
  std::fflush(stdout);
  co_await web.serve(std::move(listener));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string_view memory = argv[1], bench = argv[2];
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  troupe::http::router routes;
  routes.get("/plaintext", [] { return response::view("Hello, World!", "text/plain"); });
  routes.get("/json", memory == "context" ? json_in_context : json_by_malloc);
  const std::string document =
      bench == "gzip_json" ? text_of(std::string(argv[3]) + "/document") : "";
  if (!document.empty()) {
    routes.get("/document", [&] { return response::view(document, "application/json"); });
    routes.around(troupe::http::compress());
  }
  if (bench == "http_static") routes.files("/", std::string(argv[3]) + "/files");
  troupe::http::server_options options;
  options.name = "troupe";
  // All connections come from one address.
  options.connections_per_peer = options.descriptors_per_peer = options.connections;
  troupe::runtime rt({.workers = 1});
  rt.spawn(serve(troupe::http::server(std::move(routes), options)));
  rt.run();
}
