#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/media_type.hpp"
#include "troupe/http/values/multipart.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::http {

namespace {

std::string boundary_of(const request& from) {
  const std::string_view type = from.field("Content-Type");
  if (!same_word(type_of_media(type), "multipart/form-data"))
    throw status_error(415, "Content-Type: multipart/form-data is needed");
  return parameter_of_media(type, "boundary");
}

}  // namespace

multipart_reader::multipart_reader(request& from, const multipart_limits& limits)
    : from_(from), parser_(boundary_of(from), limits) {
  if (from.is_parted_) {
    throw usage_error(
        "troupe: http: another multipart_reader, or a read_form() that was given up, has read a "
        "part of this body, which cannot be read again: answer the request");
  }
}

task<multipart_parser::step> multipart_reader::advance() {
  using event = multipart_parser::event;
  for (;;) {
    const multipart_parser::step step = parser_.next(std::string_view(input_).substr(used_));
    used_ += step.consumed;
    if (step.what != event::need_more) co_return step;
    if (step.consumed != 0) continue;
    input_.erase(0, std::exchange(used_, 0));
    const std::string_view more = co_await from_.read();
    from_.is_parted_ = true;
    if (more.empty()) parser_.check_end();
    input_ += more;
    kept_.keep(from_, input_.capacity());
  }
}

task<bool> multipart_reader::next() {
  using event = multipart_parser::event;
  while (!is_over_) {
    const multipart_parser::step step = co_await advance();
    if (step.what == event::end) is_over_ = true;
    // A call that is given up behind the end of a part leaves read() nothing of the next one.
    if (step.what == event::end || step.what == event::part_end) in_part_ = false;
    if (step.what == event::part) {
      in_part_ = true;
      co_return true;
    }
  }
  co_return false;
}

task<std::string_view> multipart_reader::read() {
  if (!in_part_) co_return std::string_view();
  const multipart_parser::step step = co_await advance();
  in_part_ = step.what == multipart_parser::event::data;
  co_return step.data;
}

}  // namespace troupe::http
