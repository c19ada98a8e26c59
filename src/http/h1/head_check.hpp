// head_check: checks of a head that llhttp does not make. Pure functions of the head's bytes.
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
  std::size_t bytes = 0;  // with its CR LF, and with an empty line before it
};
// `target`: as llhttp found it.
start_line check_request_line(std::string_view section, std::string_view target,
                              message_head& to) noexcept;
start_line check_status_line(std::string_view section, message_head& to) noexcept;

// Checks that from byte `at` to the end there are only lines NAME ":" OWS VALUE OWS CRLF at the
// positions that llhttp found, and an empty line. Corrects the positions so that they leave out
// white space.
fault check_lines(std::string_view section, std::size_t at,
                  std::vector<fields::position>& positions) noexcept;

// Checks a request: the form of its target, and its host.
fault check_target(message_head& head) noexcept;

// Derives from the fields how long the message is, and whether the connection stays open.
fault check_meaning(side reads, message_head& head) noexcept;
fault check_trailer_fields(const fields& trailer) noexcept;

}  // namespace troupe::http
