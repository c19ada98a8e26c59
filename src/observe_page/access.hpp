// access: the right to see a program's page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe_page/tokens/token_limit.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe::observe_page {

// Whether the request came from this machine, and by a name of it: a page that came from elsewhere
// must not read this one through a name of its own that leads to the loopback.
// `names`: more names of this machine, beside localhost and the loopback's addresses.
bool is_local(const http::request& asked, const std::vector<std::string>& names = {});

// The fields in which a browser names the page that caused the request; empty: absent.
struct request_site {
  std::string_view fetch_site, fetch_mode, origin, host;
};
bool is_of_other_site(const request_site& from);
// The answer to a request that a page of another site has caused; nullopt: none has.
std::optional<http::response> refuse_other_site(const http::request& asked);

// Decides on each request for the page of add_observe_page(). Thread: any.
class access {
 public:
  access(std::string token, std::vector<std::string> hosts)
      : token_(std::move(token)), hosts_(std::move(hosts)) {}
  // The answer to a request that may not see the page; nullopt: it may.
  std::optional<http::response> refuse(const http::request& asked);

 private:
  const std::string token_;
  const std::vector<std::string> hosts_;
  token_limit wrong_;
};

// Whether both are the same. Its duration depends on the length of `given` alone.
bool is_same(std::string_view secret, std::string_view given) noexcept;

// The token of the field Authorization: the password of `Basic`, or the token of `Bearer`; nullopt:
// none.
std::optional<std::string> token_of(std::string_view authorization);

}  // namespace troupe::observe_page
