// page_of: the server's page for an error that has no body.
#pragma once

#include <string_view>

#include "troupe/http/fields.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {

// The page for a request with these fields. It has Vary if the request has Accept: a request
// without Accept gets the form that every client can take.
response page_of(const fields& asked, int status, std::string_view detail = {});

}  // namespace troupe::http
