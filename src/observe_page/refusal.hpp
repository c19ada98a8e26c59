// refusal: why a request gets no page.
#pragma once

#include <string>
#include <utility>

#include "troupe/http/response.hpp"

namespace troupe::observe_page {

// A text with this status, for people.
inline http::response refusal(int status, std::string why) {
  return http::response::text(std::move(why)).status(status);
}

}  // namespace troupe::observe_page
