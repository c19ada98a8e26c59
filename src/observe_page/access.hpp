// access: who may see a program's page.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe::observe_page {

// Whether the request came from this machine, and by a name of it: a page that came from elsewhere
// must not read this one through a name of its own that leads to the loopback.
bool is_local(const http::request& asked);

// The answer to a request that may not see the page; nullopt: it may. See add_observe_page().
std::optional<http::response> refuse(const http::request& asked, const std::string& token);

// Whether both are the same. Its duration depends on the length of `given` alone.
bool is_same(std::string_view secret, std::string_view given) noexcept;

// The token of the field Authorization: the password of `Basic`, or that of `Bearer`; nullopt:
// none.
std::optional<std::string> token_of(std::string_view authorization);

}  // namespace troupe::observe_page
