#include "troupe/http/fault.hpp"

namespace troupe::http {

int status_of(fault reason) noexcept {
  switch (reason) {
    case fault::bad_version:
      return 505;
    case fault::unknown_method:
    case fault::unknown_coding:
      return 501;
    case fault::target_too_long:
      return 414;
    case fault::head_too_large:
    case fault::too_many_fields:
      return 431;
    case fault::unknown_content_coding:
      return 415;
    case fault::bad_expectation:
      return 417;
    case fault::body_too_large:
      return 413;
    case fault::too_slow:
      return 408;
    case fault::over_budget:
      return 503;
    default:
      return 400;
  }
}

const char* text_of(fault reason) noexcept {
  switch (reason) {
    case fault::none:
      return "nothing is wrong";
    case fault::bad_start_line:
      return "the first line is not one of HTTP/1.1";
    case fault::bad_target:
      return "this method takes no target of that form";
    case fault::bad_version:
      return "the version is neither HTTP/1.0 nor HTTP/1.1";
    case fault::unknown_method:
      return "the method is unknown";
    case fault::target_too_long:
      return "the target is too long";
    case fault::head_too_large:
      return "the head is too large";
    case fault::too_many_fields:
      return "there are too many fields";
    case fault::bad_field:
      return "a field is malformed";
    case fault::folded_field:
      return "a field continues in a second line";
    case fault::bad_line_end:
      return "a line ends otherwise than with CR LF";
    case fault::no_host:
      return "there is no Host field";
    case fault::several_hosts:
      return "there are several Host fields";
    case fault::bad_host:
      return "the Host field names no host";
    case fault::bad_length:
      return "Content-Length is no number, or there are several";
    case fault::length_and_coding:
      return "there are both Content-Length and Transfer-Encoding";
    case fault::bad_coding:
      return "Transfer-Encoding is not chunked";
    case fault::unknown_coding:
      return "Transfer-Encoding has a coding that is unknown here";
    case fault::bad_chunk:
      return "a chunk is malformed";
    case fault::chunk_line_too_long:
      return "the extensions of a chunk are too long";
    case fault::chunk_extensions_too_long:
      return "the extensions of all chunks together are too long";
    case fault::bad_trailer:
      return "the trailer has a field that belongs to the head";
    case fault::bad_expectation:
      return "what is expected is not 100-continue";
    case fault::body_too_large:
      return "the body is too large";
    case fault::too_slow:
      return "it did not come in time";
    case fault::truncated:
      return "it ended in the middle";
    case fault::bad_frames:
      return "it breaks the rules of HTTP/2";
    case fault::unknown_content_coding:
      return "the body has a Content-Encoding that is not known here, or several";
    case fault::bad_content:
      return "the body is not what its Content-Encoding says";
    case fault::over_budget:
      return "the server keeps too much for this client: try again later";
  }
  return "";
}

refused::refused(fault why) : error(std::string("troupe: http: ") + text_of(why)), why_(why) {}

}  // namespace troupe::http
