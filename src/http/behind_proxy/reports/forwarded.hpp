// forwarded: finds the client of a request that came through proxies, by the fields in which each
// proxy notes from whom it got the request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "troupe/http/behind_proxy/network.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/options.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe::http {

// Each proxy appends the address of its own peer: the proxy next to the server writes the last
// entry, and entries of a client lie further left. The walk goes from right to left
// for as long as the address that it came to is one of `trusted`. It ends before an entry that is
// no address ("unknown", "_hidden", malformed): then the client is not known, and the result is the
// proxy that wrote that entry. `peer`: of the connection; empty for a Unix socket. Pure. Cost: no
// allocation, time linear in the bytes of the fields.
std::optional<endpoint> client_behind(std::optional<endpoint> peer, http::fields all,
                                      forwarded_field source,
                                      std::span<const network> trusted) noexcept;

// The address of one entry of X-Forwarded-For: "192.0.2.1", "2001:db8::1", even with a port:
// "192.0.2.1:80", "[2001:db8::1]:80". Port 0 if there is none. Empty if it is no address.
std::optional<endpoint> address_of_entry(std::string_view entry) noexcept;
// The same of an element of Forwarded (RFC 7239): "for=192.0.2.1;proto=https", with IPv6 in quotes
// and brackets. Empty if it names no address, or names two.
std::optional<endpoint> address_of_element(std::string_view element) noexcept;

// The last element of a list, which is cut off, without the spaces around it. A comma in quotes
// separates nothing if `has_quotes`. The quotes are read from the right, so that an odd one of a
// client cannot hide the comma before the entry that a proxy has appended.
std::string_view take_last(std::string_view& list, bool has_quotes) noexcept;

}  // namespace troupe::http
