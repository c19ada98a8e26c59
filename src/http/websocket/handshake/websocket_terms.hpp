// websocket_terms: the terms on which the two ends of a WebSocket agree in their handshake: the
// subprotocol (RFC 6455) and permessage-deflate (RFC 7692).
#pragma once

#include <string>

#include "troupe/http/fields.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::http {

// Throws option_error for an option that no handshake can express.
void check_options(const websocket_options& options);

// The server's side. Sets `terms` to the terms that the request offers and `options` allow, and
// adds the fields of the answer to `lines`. Returns "", or the reason for an answer 400.
std::string accept_terms(const fields& request, const websocket_options& options,
                         websocket_terms& terms, std::string& lines);

// The client's side: returns the fields of the request, as lines.
std::string offer_lines(const websocket_options& options);
// Sets `terms` to the terms of the answer. Returns "", or the reason why the answer does not accept
// the offer of `options`.
std::string take_terms(const fields& answer, const websocket_options& options,
                       websocket_terms& terms);

}  // namespace troupe::http
