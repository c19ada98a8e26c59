// head_check: what a head has to be beside what llhttp looks at. Pure functions of its bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "troupe/http/fault.hpp"
#include "troupe/http/message.hpp"
#include "troupe/http/parser.hpp"

namespace troupe::http {

struct start_line {
  fault wrong = fault::none;
  std::size_t bytes = 0;  // with its CR LF, and an empty line before it
};
// `target` as llhttp found it.
start_line check_request_line(std::string_view section, std::string_view target,
                              message_head& to) noexcept;
start_line check_status_line(std::string_view section, message_head& to) noexcept;

// From byte `at` to the end nothing but NAME ":" OWS VALUE OWS CRLF, in the places that llhttp
// found, and an empty line. Corrects the places: white space is left out.
fault check_lines(std::string_view section, std::size_t at,
                  std::vector<fields::position>& positions) noexcept;

// Of a request: its target's form, and the host.
fault check_target(message_head& head) noexcept;

// What the fields say about the message: its length, whether the connection goes on.
fault check_meaning(side reads, message_head& head) noexcept;
fault check_trailer_fields(const fields& trailer) noexcept;

}  // namespace troupe::http
