// proxies: the choice of the proxy through which a client sends a request.
#pragma once

#include "troupe/base/language.hpp"

#include <string>

namespace troupe::http {

// The proxies of a client, as client_options::proxies. Each is "http://host:port" or "host:port",
// with "user:password@" in front of the host if the proxy requires Basic authentication (encode
// special letters with %); "": none. The default is no proxy, even if the environment names one
// (see from_environment()).
//
// A request for https, and a WebSocket, goes through a tunnel (CONNECT): the proxy sees only the
// host and the port, and the certificate is the target's. A request for http goes in the absolute
// form. The user and the password are sent only to the proxy, in the field Proxy-Authorization. If
// a request has its own field of this name, it is sent only in a request in the absolute form, to a
// proxy without a user in these settings, and never to a target.
//
// Limits: 8,192 bytes for each proxy, 65,536 for `none`. Errors: option_error of the client's
// constructor, for malformed settings, and for proxies by TLS (https://) or SOCKS. Errors of
// requests: client_error, proxy_unreachable or proxy_refused (then status() is the proxy's answer,
// for instance 407).
//
// Example:
//     troupe::http::proxy_settings chosen;
//     chosen.all = "http://ada:12345@proxy.example.org:3128";
//     chosen.none = "localhost, .example.org, 10.0.0.0/8, [::1]";
struct proxy_settings {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  proxy_settings() {}

  // For URLs of the scheme http, of https, and of both where no proxy for the scheme is set.
  std::string http, https, all;
  // The targets that are asked directly, separated by commas or spaces: a name, which includes the
  // names below it (a dot or "*." in front makes no difference), an address, a network
  // ("10.0.0.0/8"), each with a port ("[::1]:80") or for all ports; "*": all targets. Names are not
  // resolved: a name is compared with names, an address with addresses.
  std::string none;

  // Reads http_proxy, https_proxy, all_proxy and no_proxy, or their names in upper case if those
  // are not set. HTTP_PROXY is not read: in a CGI program it is a field that the peer chose
  // (CVE-2016-5385). Thread: none may change the environment at the same time.
  static proxy_settings from_environment();
};

}  // namespace troupe::http
