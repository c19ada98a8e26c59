#include "troupe/http/parser.hpp"

#include <llhttp.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/invariant.hpp"
#include "base/text/digit.hpp"
#include "base/text/eight_letters.hpp"
#include "http/h1/target.hpp"

namespace troupe::http {

// Checks of a head that llhttp does not make: pure functions of its bytes.
namespace {

struct start_line {
  fault wrong = fault::none;
  std::size_t bytes = 0;  // with its CR LF, and with an empty line before it
};
constexpr bool is_white(char character) noexcept { return character == ' ' || character == '\t'; }
using base::is_digit;

bool is_line_end(std::string_view section, std::size_t at) noexcept {
  return at + 2 <= section.size() && section[at] == '\r' && section[at + 1] == '\n';
}

// Reads "HTTP/1.0" or "HTTP/1.1" at `at`. Returns 0 or 1, or -1 for anything else.
int minor_version_at(std::string_view section, std::size_t at) noexcept {
  if (at + 8 > section.size()) return -1;
  const std::uint64_t word = base::load_eight(section.data() + at);
  if (word == base::load_eight("HTTP/1.1")) return 1;
  return word == base::load_eight("HTTP/1.0") ? 0 : -1;
}

// Whether `text` is the word but for the case of its letters. The word has lower-case letters only.
// For a short word that is known here, this takes a fifth of the instructions of same_word.
template <std::size_t Bytes>
bool is_word(std::string_view text, const char (&word)[Bytes]) noexcept {
  if (text.size() != Bytes - 1) return false;
  int differing = 0;
  for (std::size_t i = 0; i + 1 < Bytes; ++i) differing |= (text[i] | 0x20) ^ word[i];
  return differing == 0;
}

// Skips one empty line: old clients send one behind a body.
std::size_t first_line_of(std::string_view section) noexcept {
  return is_line_end(section, 0) ? 2 : 0;
}

struct codings {
  int chunked = 0, others = 0;
  bool last_is_chunked = false, malformed = false;

  void add(std::string_view list) noexcept {
    for (;;) {
      const std::size_t comma = list.find(',');
      std::string_view coding = list.substr(0, comma);
      while (!coding.empty() && is_white(coding.front())) coding.remove_prefix(1);
      while (!coding.empty() && is_white(coding.back())) coding.remove_suffix(1);
      malformed |= coding.empty();
      last_is_chunked = same_word(coding, "chunked");
      ++(last_is_chunked ? chunked : others);
      if (comma == std::string_view::npos) return;
      list.remove_prefix(comma + 1);
    }
  }
};

// `target`: as llhttp found it.
start_line check_request_line(std::string_view section, std::string_view target,
                              message_head& head) noexcept {
  const std::size_t begin = first_line_of(section);
  if (section[begin] == '\r' || section[begin] == '\n') return {fault::bad_start_line};
  const std::size_t space = section.find(' ', begin);
  if (space == std::string_view::npos || target.empty() ||
      target.data() != section.data() + space + 1) {
    return {fault::bad_start_line};
  }
  head.method_name = section.substr(begin, space - begin);
  head.method = method_named(head.method_name);
  head.target = target;
  const std::size_t end = space + 1 + target.size();
  if (section[end] != ' ') return {fault::bad_start_line};
  head.minor_version = minor_version_at(section, end + 1);
  if (head.minor_version < 0) {
    const bool names_http = section.substr(end + 1).starts_with("HTTP/");
    return {names_http ? fault::bad_version : fault::bad_start_line};
  }
  if (!is_line_end(section, end + 9)) return {fault::bad_line_end};
  return {fault::none, end + 11};
}

start_line check_status_line(std::string_view section, message_head& head) noexcept {
  const std::size_t begin = first_line_of(section);
  head.minor_version = minor_version_at(section, begin);
  if (head.minor_version < 0) return {fault::bad_version};
  const std::string_view code = section.substr(begin + 8, 4);
  if (code.size() != 4 || code[0] != ' ' || !std::all_of(code.begin() + 1, code.end(), is_digit)) {
    return {fault::bad_start_line};
  }
  head.status = (code[1] - '0') * 100 + (code[2] - '0') * 10 + (code[3] - '0');
  if (head.status < 100) return {fault::bad_start_line};
  const std::size_t after = begin + 12, end = section.find('\r', after);
  if (!is_line_end(section, end)) return {fault::bad_line_end};
  head.reason = section.substr(after, end - after);
  if (!head.reason.empty()) {
    if (head.reason.front() != ' ') return {fault::bad_start_line};
    head.reason.remove_prefix(1);
  }
  return {fault::none, end + 2};
}

// Checks that from byte `at` to the end there are only lines NAME ":" OWS VALUE OWS CRLF at the
// positions that llhttp found, and an empty line. Corrects the positions so that they leave out
// white space.
fault find_lines(std::string_view section, std::size_t at,
                 std::vector<fields::position>& positions) noexcept {
  for (fields::position& position : positions) {
    if (position.name != at) return is_white(section[at]) ? fault::folded_field : fault::bad_field;
    const std::size_t colon = at + position.name_bytes;
    if (position.name_bytes == 0 || colon >= section.size() || section[colon] != ':')
      return fault::bad_field;
    std::size_t value = colon + 1;
    while (value < section.size() && is_white(section[value])) ++value;
    if (position.value_bytes == 0) {
      position.value = static_cast<std::uint32_t>(value);
    } else if (position.value != value) {
      return fault::folded_field;
    }
    std::size_t end = std::size_t{position.value} + position.value_bytes;
    while (end < section.size() && is_white(section[end])) ++end;
    if (!is_line_end(section, end)) return fault::bad_line_end;
    while (position.value_bytes != 0 &&
           is_white(section[position.value + position.value_bytes - 1]))
      --position.value_bytes;
    at = end + 2;
  }
  if (at < section.size() && is_white(section[at])) return fault::folded_field;
  return is_line_end(section, at) && at + 2 == section.size() ? fault::none : fault::bad_field;
}

// Replaces each line end in a value from byte `at` on by spaces. Returns whether it found any.
bool unfold(std::string& section, std::size_t at) noexcept {
  bool found = false;
  for (at = section.find("\r\n", at); at != std::string::npos; at = section.find("\r\n", at + 2)) {
    if (at + 2 >= section.size() || !is_white(section[at + 2])) continue;
    section[at] = section[at + 1] = ' ';
    found = true;
  }
  return found;
}

// Derives from the fields how long the message is, and whether the connection stays open.
fault check_meaning(side reads, message_head& head) noexcept {
  codings coded;
  int hosts = 0, lengths = 0;
  bool close = false, keep = false, upgrade_field = false, upgrade_word = false;
  std::string_view host;
  for (const field field : head.fields) {
    switch (field.name.size()) {
      case 4:
        if (is_word(field.name, "host")) {
          ++hosts;
          host = field.value;
        }
        break;
      case 6:
        if (reads == side::requests && is_word(field.name, "expect")) {
          if (!same_word(field.value, "100-continue")) return fault::bad_expectation;
          head.expects_continue = head.minor_version == 1;
        }
        break;
      case 7:
        if (is_word(field.name, "upgrade")) upgrade_field = true;
        break;
      case 10:
        if (same_word(field.name, "connection")) {
          close |= lists_word(field.value, "close");
          keep |= lists_word(field.value, "keep-alive");
          upgrade_word |= lists_word(field.value, "upgrade");
        }
        break;
      case 11:
        if (reads == side::requests && same_word(field.name, "traceparent")) head.in_trace = true;
        break;
      case 14:
        if (same_word(field.name, "content-length")) {
          ++lengths;
          const char* const end = field.value.data() + field.value.size();
          const auto [rest, bad] = std::from_chars(field.value.data(), end, head.length);
          if (bad != std::errc{} || rest != end) return fault::bad_length;
        }
        break;
      case 17:
        if (same_word(field.name, "transfer-encoding")) coded.add(field.value);
        break;
      default:
        break;
    }
  }
  if (lengths > 1) return fault::bad_length;
  head.has_length = lengths == 1;
  if (coded.chunked + coded.others > 0) {
    if (head.has_length) return fault::length_and_coding;
    if (coded.malformed || !coded.last_is_chunked || coded.chunked != 1 || head.minor_version == 0)
      return fault::bad_coding;
    if (coded.others > 0) return fault::unknown_coding;
    head.chunked = true;
  }
  if (reads == side::requests) {
    if (hosts > 1) return fault::several_hosts;
    if (hosts == 0 && head.minor_version == 1) return fault::no_host;
    if (!host.empty() && !is_host(host)) return fault::bad_host;
    if (head.host.empty()) head.host = host;
  }
  head.keep_alive = !close && (head.minor_version == 1 || keep);
  head.wants_upgrade = upgrade_field && upgrade_word && head.minor_version == 1;
  return fault::none;
}

fault check_trailer_fields(const fields& trailer) noexcept {
  for (const field field : trailer) {
    for (const std::string_view name :
         {"content-length", "transfer-encoding", "host", "connection", "trailer", "upgrade"}) {
      if (same_word(field.name, name)) return fault::bad_trailer;
    }
  }
  return fault::none;
}

}  // namespace

// The functions that llhttp calls. Positions are kept as distances from the beginning, because the
// bytes may lie elsewhere when more of them have arrived.
// Invariants
//   P1  A message begins once, and only when the one before has ended.
//   P2  The value of a field follows its name, and the next name the whole value.
struct parser_callbacks {
  static parser& of(llhttp_t* state) noexcept { return *static_cast<parser*>(state->data); }

  static int begin(llhttp_t* state) {
    parser& self = of(state);
    TROUPE_INVARIANT(self.phase_ == parser::phase::awaited, "P1");
    self.phase_ = parser::phase::head;
    return 0;
  }
  static int target(llhttp_t* state, const char* at, std::size_t bytes) {
    parser& self = of(state);
    if (self.target_bytes_ == 0) self.target_at_ = self.distance(at);
    self.target_bytes_ += bytes;
    if (self.target_bytes_ <= self.limits_.target_bytes) return 0;
    return stop(self, fault::target_too_long);
  }
  static int name(llhttp_t* state, const char* at, std::size_t bytes) {
    parser& self = of(state);
    if (self.field_ == parser::field_part::none) {
      if (self.positions_->size() == self.limits_.fields) return stop(self, fault::too_many_fields);
      self.positions_->push_back({static_cast<std::uint32_t>(self.distance(at)), 0, 0, 0});
      self.field_ = parser::field_part::name;
    }
    TROUPE_INVARIANT(self.field_ == parser::field_part::name, "P2");
    self.positions_->back().name_bytes += static_cast<std::uint32_t>(bytes);
    return 0;
  }
  static int value(llhttp_t* state, const char* at, std::size_t bytes) {
    parser& self = of(state);
    TROUPE_INVARIANT(self.field_ != parser::field_part::none, "P2");
    fields::position& position = self.positions_->back();
    const std::size_t where = self.distance(at);
    if (self.field_ != parser::field_part::value) {
      position.value = static_cast<std::uint32_t>(where);
      self.field_ = parser::field_part::value;
    } else if (where != std::size_t{position.value} + position.value_bytes) {
      if (self.side_ == side::requests) return stop(self, fault::folded_field);
      self.folded_ = true;
      position.value_bytes = static_cast<std::uint32_t>(where - position.value);
    }
    position.value_bytes += static_cast<std::uint32_t>(bytes);
    return 0;
  }
  static int value_complete(llhttp_t* state) {
    of(state).field_ = parser::field_part::none;
    return 0;
  }
  static int head(llhttp_t* state) {
    state->upgrade = 0;  // this parser does not read the bytes behind an upgrade
    return HPE_PAUSED;
  }
  static int body(llhttp_t* state, const char* at, std::size_t bytes) {
    of(state).piece_ = {at, bytes};
    return HPE_PAUSED;
  }
  static int chunk(llhttp_t* state) {
    parser& self = of(state);
    if (state->content_length > self.body_bytes_max_ - self.announced_)
      return stop(self, fault::body_too_large);
    self.announced_ += state->content_length;
    self.chunk_bytes_ = state->content_length;
    self.is_line_new_ = true;
    if (state->content_length != 0) return 0;
    self.saw_last_chunk_ = true;
    return HPE_PAUSED;
  }
  static int end(llhttp_t*) { return HPE_PAUSED; }

 private:
  static int stop(parser& self, fault why) noexcept {
    self.why_ = why;
    return HPE_USER;
  }
};

namespace {

constexpr llhttp_settings_t make_settings() {
  llhttp_settings_t settings{};
  settings.on_message_begin = &parser_callbacks::begin;
  settings.on_url = &parser_callbacks::target;
  settings.on_header_field = &parser_callbacks::name;
  settings.on_header_value = &parser_callbacks::value;
  settings.on_header_value_complete = &parser_callbacks::value_complete;
  settings.on_headers_complete = &parser_callbacks::head;
  settings.on_body = &parser_callbacks::body;
  settings.on_chunk_header = &parser_callbacks::chunk;
  settings.on_message_complete = &parser_callbacks::end;
  return settings;
}
constexpr llhttp_settings_t settings = make_settings();

llhttp_t* state_of(std::byte* bytes) noexcept {
  return std::launder(reinterpret_cast<llhttp_t*>(bytes));
}

fault fault_of(int number, bool in_head) noexcept {
  switch (number) {
    case HPE_INVALID_URL:
      return fault::bad_target;
    case HPE_PAUSED_H2_UPGRADE:
      return fault::bad_version;
    case HPE_INVALID_HEADER_TOKEN:
    case HPE_UNEXPECTED_SPACE:
      return fault::bad_field;
    case HPE_STRICT:
      return in_head ? fault::bad_line_end : fault::bad_chunk;
    case HPE_LF_EXPECTED:
    case HPE_CR_EXPECTED:
      return fault::bad_line_end;
    case HPE_INVALID_CONTENT_LENGTH:
      return fault::bad_length;
    case HPE_INVALID_CHUNK_SIZE:
      return fault::bad_chunk;
    case HPE_INVALID_TRANSFER_ENCODING:
      return fault::bad_coding;
    default:
      return fault::bad_start_line;
  }
}

// `line`: the start line, as far as llhttp has taken it. Returns bad_version if the line names a
// version of HTTP other than 1.0 and 1.1, otherwise bad_start_line.
fault fault_of_version(std::string_view line) noexcept {
  const std::size_t begin = line.rfind("HTTP/");
  const std::string_view version =
      begin == std::string_view::npos ? std::string_view() : line.substr(begin + 5);
  const auto digit = [](char character) { return character >= '0' && character <= '9'; };
  const bool whole =
      version.size() == 3 && digit(version[0]) && version[1] == '.' && digit(version[2]);
  return whole && version != "1.0" && version != "1.1" ? fault::bad_version : fault::bad_start_line;
}

bool is_token(char character) noexcept {
  const char letter = static_cast<char>(character | 0x20);
  return (letter >= 'a' && letter <= 'z') || (character >= '0' && character <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(character) != std::string_view::npos;
}

}  // namespace

parser::parser(http::side reads, const parser_limits& limits) : limits_(limits), side_(reads) {
  static_assert(sizeof(llhttp_t) <= state_bytes && alignof(llhttp_t) <= 8);
  auto* state = ::new (state_.data()) llhttp_t;
  llhttp_init(state, reads == side::requests ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
  state->data = this;
}

void parser::begin_section(std::vector<http::fields::position>& positions) noexcept {
  positions_ = &positions;
  positions.clear();
  scanned_ = target_bytes_ = 0;
  field_ = field_part::none;
  folded_ = false;
}

// RFC 9112 (5.2): a server refuses a value over several lines, and a user agent reads spaces for
// its line ends. llhttp reads such a value in pieces, at the same positions.
fault parser::check_lines(std::string_view& section, std::size_t at, bool is_trailer) {
  fault wrong = find_lines(section, at, *positions_);
  if (side_ == side::requests || (wrong == fault::none && !folded_)) return wrong;
  if (unfolded_ == nullptr) unfolded_ = std::make_unique<unfolded_sections>();
  std::string& text = is_trailer ? unfolded_->trailer : unfolded_->head;
  text = section;
  if (!unfold(text, at)) return wrong;
  section = text;
  first_ = text.data();
  wrong = find_lines(section, at, *positions_);
  return wrong;
}

parser::step parser::refuse(fault why) noexcept {
  phase_ = phase::failed;
  why_ = why;
  return {event::refused, 0, {}};
}

parser::step parser::next(std::string_view input) {
  switch (phase_) {
    case phase::failed:
      return {event::refused, 0, {}};
    case phase::ended:
      phase_ = phase::between;
      return {event::end, 0, {}};
    case phase::between:
      phase_ = phase::awaited;
      trailer_ = {};
      begin_section(head_positions_);
      return read_section(input);
    case phase::method_unknown:
      return name_unknown_method(input);
    case phase::body:
      return read_body(input);
    default:
      return read_section(input);
  }
}

// Reads a head or a trailer. Until it is complete, the caller passes its bytes again, but each byte
// is scanned once.
parser::step parser::read_section(std::string_view input) {
  const std::size_t most = std::min(input.size(), limits_.head_bytes);
  if (scanned_ >= most) return {event::need_more, 0, {}};
  llhttp_t* const state = state_of(state_.data());
  first_ = input.data();
  const llhttp_errno_t said = llhttp_execute(state, first_ + scanned_, most - scanned_);
  if (said == HPE_OK) {
    scanned_ = most;
    return most < limits_.head_bytes ? step{event::need_more, 0, {}}
                                     : refuse(fault::head_too_large);
  }
  if (said != HPE_PAUSED) {
    if (said == HPE_USER) return refuse(why_);
    if (said == HPE_INVALID_METHOD && phase_ != phase::trailer) return name_unknown_method(input);
    if (said == HPE_UNEXPECTED_CONTENT_LENGTH) {
      return refuse(state->flags & F_TRANSFER_ENCODING ? fault::length_and_coding
                                                       : fault::bad_length);
    }
    if (said == HPE_INVALID_VERSION) {
      return refuse(fault_of_version(input.substr(0, distance(llhttp_get_error_pos(state)))));
    }
    return refuse(fault_of(said, true));
  }
  const auto bytes = static_cast<std::size_t>(llhttp_get_error_pos(state) - first_);
  llhttp_resume(state);
  const std::string_view section = input.substr(0, bytes);
  if (phase_ == phase::trailer) {
    if (const fault wrong = check_trailer(section); wrong != fault::none) return refuse(wrong);
    phase_ = phase::between;
    return {event::end, bytes, {}};
  }
  if (const fault wrong = check_head(section); wrong != fault::none) return refuse(wrong);
  if (head_.has_body) {
    phase_ = phase::body;
    framing_bytes_ = announced_ = extension_bytes_ = 0;
    is_line_new_ = false;
    body_bytes_max_ = UINT64_MAX;
    left_ = head_.length;
  } else {
    // The message ends here without a further byte.
    state->flags |= F_SKIPBODY;
    llhttp_execute(state, first_ + bytes, 0);
    llhttp_resume(state);
    phase_ = phase::ended;
  }
  return {event::head, bytes, {}};
}

// llhttp stops at the first letter that fits no method. Whether this is an unknown method, or
// nothing like a request, is decided when the word is complete, so that the result does not depend
// on how the bytes arrived.
parser::step parser::name_unknown_method(std::string_view input) {
  constexpr std::size_t method_bytes_max = 32;
  phase_ = phase::method_unknown;
  std::size_t begin = 0;
  while (begin < input.size() && (input[begin] == '\r' || input[begin] == '\n')) ++begin;
  const std::string_view word = input.substr(begin);
  const auto end = std::find_if_not(word.begin(), word.end(), is_token);
  const auto bytes = static_cast<std::size_t>(end - word.begin());
  if (bytes > method_bytes_max) return refuse(fault::bad_start_line);
  if (end == word.end()) return {event::need_more, 0, {}};
  return refuse(*end == ' ' && bytes > 0 ? fault::unknown_method : fault::bad_start_line);
}

fault parser::check_head(std::string_view section) {
  static_assert(std::is_trivially_destructible_v<message_head>);
  std::construct_at(&head_);  // assignment would write a second head first
  const std::string_view target(first_ + target_at_, target_bytes_);
  const start_line line = side_ == side::requests ? check_request_line(section, target, head_)
                                                  : check_status_line(section, head_);
  if (line.wrong != fault::none) return line.wrong;
  if (const fault wrong = check_lines(section, line.bytes, false); wrong != fault::none)
    return wrong;
  head_.fields = http::fields(first_, head_positions_);
  if (side_ == side::requests) {
    if (const fault wrong = check_target(head_); wrong != fault::none) return wrong;
  }
  if (const fault wrong = check_meaning(side_, head_); wrong != fault::none) return wrong;
  const llhttp_t* const state = state_of(state_.data());
  // This parser and llhttp must have read the same. Otherwise one of them is wrong about where the
  // message ends.
  const bool chunked = (state->flags & F_CHUNKED) != 0,
             sized = (state->flags & F_CONTENT_LENGTH) != 0;
  if (chunked != head_.chunked || sized != head_.has_length ||
      (sized && state->content_length != head_.length)) {
    return fault::bad_length;
  }
  head_.has_body = head_.chunked || head_.length > 0;
  // True if the message ends with its head, whatever its fields contain. llhttp does not know this.
  bool is_bare = false;
  if (side_ == side::responses) {
    is_bare = answers_ == method::head || head_.status < 200 || head_.status == 204 ||
              head_.status == 304;
    head_.until_close = !is_bare && !head_.chunked && !head_.has_length;
    head_.has_body = !is_bare && (head_.has_body || head_.until_close);
  }
  if (!is_bare) head_.keep_alive = head_.keep_alive && llhttp_should_keep_alive(state) != 0;
  return fault::none;
}

fault parser::check_trailer(std::string_view section) {
  if (const fault wrong = check_lines(section, 0, true); wrong != fault::none) return wrong;
  trailer_ = http::fields(first_, trailer_positions_);
  return check_trailer_fields(trailer_);
}

// Counts the bytes of a chunk's line beyond its size and line end. `framing_bytes_` also holds the
// line end of the chunk before.
void parser::count_extensions() noexcept {
  const bool is_first = announced_ == chunk_bytes_;  // a chunk of no bytes is the last one
  std::size_t needed = is_first ? 3 : 5;             // with one digit
  for (std::uint64_t left = chunk_bytes_ / 16; left != 0; left /= 16) ++needed;
  extension_bytes_ += framing_bytes_ - std::min(framing_bytes_, needed);
  is_line_new_ = false;
}

parser::step parser::read_body(std::string_view input) {
  if (input.empty()) return {event::need_more, 0, {}};
  llhttp_t* const state = state_of(state_.data());
  piece_ = {};
  saw_last_chunk_ = false;
  const llhttp_errno_t said = llhttp_execute(state, input.data(), input.size());
  if (said != HPE_OK && said != HPE_PAUSED)
    return refuse(said == HPE_CB_CHUNK_HEADER ? why_ : fault_of(said, false));
  std::size_t consumed = input.size();
  if (said == HPE_PAUSED) {
    consumed = static_cast<std::size_t>(llhttp_get_error_pos(state) - input.data());
    llhttp_resume(state);
  }
  framing_bytes_ += consumed - piece_.size();
  if (framing_bytes_ > chunk_line_bytes_max) return refuse(fault::chunk_line_too_long);
  if (is_line_new_ && (!piece_.empty() || saw_last_chunk_)) {
    count_extensions();
    if (extension_bytes_ > limits_.chunk_extension_bytes)
      return refuse(fault::chunk_extensions_too_long);
  }
  if (!piece_.empty()) {
    framing_bytes_ = 0;
    if (!head_.chunked && !head_.until_close && (left_ -= piece_.size()) == 0) {
      // The message ends here without a further byte.
      llhttp_execute(state, input.data() + consumed, 0);
      llhttp_resume(state);
      phase_ = phase::ended;
    }
    return {event::body, consumed, piece_};
  }
  if (saw_last_chunk_) {
    phase_ = phase::trailer;
    begin_section(trailer_positions_);
    step rest = read_section(input.substr(consumed));
    rest.consumed += consumed;
    return rest;
  }
  return {event::need_more, consumed, {}};
}

parser::step parser::finish() {
  if (phase_ == phase::failed) return {event::refused, 0, {}};
  if (phase_ == phase::ended) return next({});
  if (phase_ == phase::body && head_.until_close) {
    phase_ = phase::failed;  // nothing may follow it
    why_ = fault::truncated;
    return {event::end, 0, {}};
  }
  if (phase_ == phase::between || phase_ == phase::awaited) return {event::end, 0, {}};
  return refuse(fault::truncated);
}

}  // namespace troupe::http
