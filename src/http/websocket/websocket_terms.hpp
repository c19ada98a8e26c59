// websocket_terms: what both ends of a WebSocket agree on in their handshake: the subprotocol (RFC
// 6455) and permessage-deflate (RFC 7692).
#pragma once

#include <string>

#include "troupe/http/message.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::http {

// Throws option_error for what no handshake could say.
void check_options(const websocket_options& options);

// The server's side: what a request offers and `options` allow becomes `terms`, and the lines of
// the answer are added to `lines`. Returns "", or why the request is answered 400.
std::string accept_terms(const fields& request, const websocket_options& options,
                         websocket_terms& terms, std::string& lines);

// The client's side: the lines of the request.
std::string offer_lines(const websocket_options& options);
// What the answer says becomes `terms`. Returns "", or why the answer is no acceptance of what
// `options` offer.
std::string take_terms(const fields& answer, const websocket_options& options,
                       websocket_terms& terms);

}  // namespace troupe::http
