// target: checks of a request's target, which are the same in each version of HTTP.
#pragma once

#include <string_view>

#include "troupe/http/fault.hpp"
#include "troupe/http/parser.hpp"

namespace troupe::http {

// True for a name, an IPv4 address, or an IPv6 address in brackets, each with a port or without.
bool is_host(std::string_view text) noexcept;
// Checks the form of a request's target. Sets path and query, and the host of an absolute target.
fault check_target(message_head& head) noexcept;

}  // namespace troupe::http
