// What a host's name says by itself, with nobody asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "troupe/dns/resolver.hpp"

namespace troupe::dns {

// An address in digits, or localhost; nothing for a name that must be asked for. Throws
// resolve_error: bad_name for what no host can be called, no_data for an address of another family.
std::optional<std::vector<endpoint>> known_address(std::string_view host, std::uint16_t port,
                                                   address_family family);

}  // namespace troupe::dns
