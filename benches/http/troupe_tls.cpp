// Our HTTPS server, on one worker.
//
// bench_tls BENCH FOLDER: answers /hello with a line, and other paths with the files of
// FOLDER/files.
#include <sys/resource.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "troupe/http/files.hpp"
#include "troupe/http/server.hpp"
#include "troupe/troupe.hpp"

namespace {

troupe::task<> serve(troupe::http::server web, troupe::tls_context self) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  std::printf("%d\n", listener.local().port());
  std::fflush(stdout);
  co_await web.serve(std::move(listener), std::move(self));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view bench = argv[1];
  const std::string folder = argv[2];
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  troupe::http::router routes;
  routes.get("/hello", [] { return troupe::http::response::text("Hello, World!"); });
  if (bench == "tls_bulk") routes.files("/", folder + "/files");
  troupe::http::server_options options;
  options.name = "troupe";
  // All connections come from one address.
  options.connections_per_peer = options.descriptors_per_peer = options.connections;
  auto identity = troupe::tls_options::https(folder + "/certificate.pem", folder + "/key.pem");
  identity.tickets = bench == "tls_resumed";
  troupe::runtime rt({.workers = 1});
  rt.spawn(serve(troupe::http::server(std::move(routes), options),
                 troupe::tls_context::server(identity)));
  rt.run();
}
