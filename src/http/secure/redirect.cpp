#include <string>
#include <string_view>

#include "troupe/http/server.hpp"

namespace troupe::http {
namespace {

// "a.test:80" becomes "a.test", and "[::1]:80" becomes "[::1]".
std::string_view without_port(std::string_view host) noexcept {
  const std::size_t from = host.starts_with('[') ? host.find(']') : 0;
  const std::size_t colon = host.find(':', from == std::string_view::npos ? 0 : from);
  return host.substr(0, colon);
}

}  // namespace

router redirect_to_https(std::uint16_t port) {
  const std::string port_text = port == 443 ? "" : ":" + std::to_string(port);
  const auto answer = [port_text](const request& asked, std::string_view) {
    const std::string_view host = without_port(asked.host());
    if (host.empty()) return response(400);
    std::string location =
        "https://" + std::string(host) + port_text + std::string(asked.head().path);
    if (!asked.query().empty()) location.append("?").append(asked.query());
    return response::redirect(location, 308);  // the client repeats its method
  };
  router routes;
  for (const method redirected :
       {method::get, method::post, method::put, method::patch, method::remove})
    routes.add(redirected, "/{path...}", answer);
  return routes;
}

}  // namespace troupe::http
