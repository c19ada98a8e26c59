// websocket_terms: the terms on which the two ends of a WebSocket agree in their handshake: the
// subprotocol (RFC 6455) and permessage-deflate (RFC 7692).
#pragma once

#include <string>

#include "troupe/http/message.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::http {

// Throws option_error for an option that no handshake can express.
void check_options(const websocket_options& options);

// The server's side. Sets `terms` to what the request offers and `options` allow, and adds the
// fields of the answer to `lines`. Returns "", or the reason why the request is answered 400.
std::string accept_terms(const fields& request, const websocket_options& options,
                         websocket_terms& terms, std::string& lines);

// The client's side: returns the fields of the request, as lines.
std::string offer_lines(const websocket_options& options);
// Sets `terms` to what the answer says. Returns "", or the reason why the answer does not accept
// what `options` offer.
std::string take_terms(const fields& answer, const websocket_options& options,
                       websocket_terms& terms);

}  // namespace troupe::http
