// The address or error that follows from a host's name by itself, without a query.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "troupe/dns/options.hpp"

namespace troupe::dns {

// Returns the address for digits or localhost; std::nullopt for a name that needs a query. Throws
// resolve_error: bad_name when no host can have this name, no_data for an address of another
// family.
std::optional<std::vector<endpoint>> known_address(std::string_view host, std::uint16_t port,
                                                   address_family family);

}  // namespace troupe::dns
