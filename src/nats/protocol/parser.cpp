#include "nats/protocol/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace troupe::nats {
namespace {

char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}
bool is_command(std::string_view word, std::string_view lower_case) noexcept {
  if (word.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower(word[i]) != lower_case[i]) return false;
  }
  return true;
}
bool is_space(char letter) noexcept { return letter == ' ' || letter == '\t'; }

std::optional<std::uint64_t> number_of(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, failed] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || failed != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace

// The words of a line; more than there may be are counted only.
struct parser::word_list {
  explicit word_list(std::string_view line) noexcept {
    for (std::size_t at = 0;;) {
      while (at < line.size() && is_space(line[at])) ++at;
      if (at == line.size()) return;
      const std::size_t begin = at;
      while (at < line.size() && !is_space(line[at])) ++at;
      if (count < all.size()) all[count] = line.substr(begin, at - begin);
      ++count;
    }
  }
  std::array<std::string_view, 6> all;
  std::size_t count = 0;
};

parser::event parser::fail(const char* why) {
  broken_ = true;
  text_ = why;
  line_.clear();
  return event::broken;
}

// INFO grows with the number of servers. Its command may come in pieces.
std::size_t parser::line_limit(std::string_view more) const noexcept {
  constexpr std::string_view info = "info";
  for (std::size_t i = 0; i < info.size(); ++i) {
    if (i >= line_.size() + more.size()) break;
    if (lower(i < line_.size() ? line_[i] : more[i - line_.size()]) != info[i])
      return limits_.line_bytes;
  }
  return limits_.info_bytes;
}

parser::step parser::next(std::string_view bytes) {
  if (broken_) return {event::broken, 0};
  const std::size_t given = bytes.size();
  const auto consumed = [&] { return given - bytes.size(); };
  if (in_message_) {
    // The header and the payload lie behind each other, and the end of the line is no part of them.
    const std::size_t taken = std::min(left_, bytes.size());
    grow(taken);
    message_.payload.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    left_ -= taken;
    if (left_ > 0) return {event::need_more, consumed()};
    const event event = end_message();
    return {event, consumed()};
  }
  const std::size_t end = bytes.find('\n');
  const std::size_t taken = std::min(end, bytes.size());
  if (line_.size() + taken > line_limit(bytes.substr(0, taken)))
    return {fail("a line is too long"), consumed()};
  if (end == std::string_view::npos) {
    line_.append(bytes);
    return {event::need_more, given};
  }
  std::string kept;
  std::string_view line = bytes.substr(0, end);
  if (!line_.empty()) {
    line_.append(line);
    kept.swap(line_);
    line = kept;
  }
  bytes.remove_prefix(end + 1);
  if (!line.ends_with('\r')) return {fail("a line does not end as lines do"), consumed()};
  line.remove_suffix(1);
  const event event = end_line(line);
  if (event == event::need_more && !bytes.empty()) {
    const step rest = next(bytes);  // of the message: there is no deeper call
    return {rest.outcome, consumed() + rest.consumed};
  }
  return {event, consumed()};
}

// A string by itself would double, up to twice the message, and keep the half beside it. This takes
// the whole of a message at once when an eighth of it has arrived: the system gives memory as it is
// used.
void parser::grow(std::size_t more) {
  std::string& payload = message_.payload;
  if (payload.capacity() - payload.size() >= more) return;
  constexpr std::size_t factor = 8;
  payload.reserve(std::min(payload.size() + left_,
                           std::max(payload.size() + more, payload.capacity() * factor)));
}

parser::event parser::end_line(std::string_view line) {
  if (line.find('\r') != std::string_view::npos || line.find('\0') != std::string_view::npos)
    return fail("a line has a control character");
  const word_list words(line);
  const std::string_view command = words.all[0];
  if (words.count == 0 || command.data() != line.data()) return fail("a line has no command");
  if (is_command(command, "msg")) return begin_message(words, false);
  if (is_command(command, "hmsg")) return begin_message(words, true);
  if (is_command(command, "ping")) return event::ping;
  if (is_command(command, "pong")) return event::pong;
  if (is_command(command, "+ok")) return event::ok;
  line.remove_prefix(command.size());
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  if (is_command(command, "info")) {
    text_ = line;
    return event::info;
  }
  if (is_command(command, "-err")) {
    if (line.size() >= 2 && line.front() == '\'' && line.back() == '\'')
      line = line.substr(1, line.size() - 2);
    text_ = line;
    return event::refused;
  }
  return fail("a line has an unknown command");
}

// MSG subject sid [reply] bytes; HMSG subject sid [reply] header-bytes all-bytes.
parser::event parser::begin_message(const word_list& words, bool has_header) {
  const std::size_t least = has_header ? 5 : 4;
  if (words.count != least && words.count != least + 1)
    return fail("a message has a wrong number of words");
  const bool has_reply = words.count > least;
  const auto sid = number_of(words.all[2]);
  const auto all = number_of(words.all[words.count - 1]);
  const auto header = has_header ? number_of(words.all[words.count - 2]) : 0;
  if (!sid || !all || !header || *header > *all) return fail("a message has a wrong number");
  if (*all > limits_.message_bytes || *header > limits_.header_bytes)
    return fail("a message is larger than the options allow");
  message_.sid = *sid;
  message_.subject = words.all[1];
  message_.reply = has_reply ? words.all[3] : std::string_view();
  message_.header.clear();
  message_.payload.clear();
  header_bytes_ = static_cast<std::size_t>(*header);
  left_ = static_cast<std::size_t>(*all) + line_end.size();
  message_.payload.reserve(std::min<std::size_t>(left_, 16 * 1024));
  in_message_ = true;
  return event::need_more;
}

parser::event parser::end_message() {
  in_message_ = false;
  if (!message_.payload.ends_with(line_end)) return fail("a message does not end where it should");
  message_.payload.resize(message_.payload.size() - line_end.size());
  if (header_bytes_ > 0) {
    message_.header = message_.payload.substr(0, header_bytes_);
    message_.payload.erase(0, header_bytes_);
  }
  return event::message;
}

}  // namespace troupe::nats
