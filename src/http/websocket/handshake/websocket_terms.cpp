#include "http/websocket/handshake/websocket_terms.hpp"

#include "http/fields/field_line.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"

namespace troupe::http {

namespace {

constexpr int bits_least = 8, bits_most = 15;  // window bits that RFC 7692 allows
constexpr int our_bits_least = 9;              // the smallest window that zlib can compress with

struct parameter {
  std::string_view name;
  std::optional<std::string> value;
};
struct extension {
  std::string_view name;
  std::vector<parameter> parameters;
};

// Reads the value of one field by the grammar of RFC 6455, 9.1. It ignores empty elements of a
// list, as RFC 7230, 7, asks of a recipient.
class reader {
 public:
  explicit reader(std::string_view text) noexcept : left_(text) {}
  bool at_end() noexcept {
    skip_blanks();
    return left_.empty();
  }
  bool take(char character) noexcept {
    skip_blanks();
    if (!left_.starts_with(character)) return false;
    left_.remove_prefix(1);
    return true;
  }
  // Returns "" when there is no token.
  std::string_view token() noexcept {
    skip_blanks();
    const auto end = std::find_if_not(left_.begin(), left_.end(), is_token_letter);
    const std::string_view found = left_.substr(0, static_cast<std::size_t>(end - left_.begin()));
    left_.remove_prefix(found.size());
    return found;
  }
  // Reads a token or a quoted string; std::nullopt when there is neither.
  std::optional<std::string> value() {
    if (!take('"')) {
      const std::string_view plain = token();
      return plain.empty() ? std::nullopt : std::optional<std::string>(plain);
    }
    std::string unquoted;
    for (;;) {
      if (left_.empty()) return std::nullopt;
      char character = left_.front();
      left_.remove_prefix(1);
      if (character == '"') break;
      if (character == '\\') {
        if (left_.empty()) return std::nullopt;
        character = left_.front();
        left_.remove_prefix(1);
      }
      unquoted += character;
    }
    return is_token(unquoted) ? std::optional(std::move(unquoted)) : std::nullopt;
  }

 private:
  void skip_blanks() noexcept {
    while (left_.starts_with(' ') || left_.starts_with('\t')) left_.remove_prefix(1);
  }
  std::string_view left_;
};

bool read_extension(reader& from, extension& target) {
  target.name = from.token();
  if (target.name.empty()) return false;
  while (from.take(';')) {
    parameter next;
    next.name = from.token();
    if (next.name.empty()) return false;
    if (from.take('=')) {
      next.value = from.value();
      if (!next.value) return false;
    }
    target.parameters.push_back(std::move(next));
  }
  return true;
}

// Calls `element` for each element of the lists in all fields of that name. Returns false when one
// of them is malformed. A field without elements counts as absent.
template <class Element>
bool read_lists(const fields& from, std::string_view name, Element element) {
  for (const field field : from) {
    if (!same_word(field.name, name)) continue;
    reader text(field.value);
    while (!text.at_end()) {
      if (text.take(',')) continue;
      if (!element(text) || !(text.at_end() || text.take(','))) return false;
    }
  }
  return true;
}

bool read_extensions(const fields& from, std::vector<extension>& extensions) {
  return read_lists(from, "Sec-WebSocket-Extensions", [&extensions](reader& text) {
    return read_extension(text, extensions.emplace_back());
  });
}

// Returns false when a protocol is named twice.
bool read_protocols(const fields& from, std::vector<std::string_view>& protocols) {
  const bool well = read_lists(from, "Sec-WebSocket-Protocol", [&protocols](reader& text) {
    protocols.push_back(text.token());
    return !protocols.back().empty();
  });
  std::vector<std::string_view> sorted = protocols;
  std::sort(sorted.begin(), sorted.end());
  return well && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::optional<int> bits_in(const std::string& text) noexcept {
  for (int bits = bits_least; bits <= bits_most; ++bits) {
    if (text == std::to_string(bits)) return bits;
  }
  return std::nullopt;
}

// The parameters of permessage-deflate in an offer or an answer.
struct deflate_words {
  bool server_forgets = false, client_forgets = false;
  bool has_client_bits = false;  // in an offer, perhaps without a value
  std::optional<int> server_bits, client_bits;
};

// Returns std::nullopt when RFC 7692 does not allow these parameters.
std::optional<deflate_words> words_of(const extension& offered, bool is_offer) {
  deflate_words words;
  for (const auto& [name, value] : offered.parameters) {
    if (name == "server_no_context_takeover" || name == "client_no_context_takeover") {
      bool& word = name.starts_with('s') ? words.server_forgets : words.client_forgets;
      if (value || word) return std::nullopt;
      word = true;
    } else if (name == "server_max_window_bits") {
      if (words.server_bits || !value) return std::nullopt;
      words.server_bits = bits_in(*value);
      if (!words.server_bits) return std::nullopt;
    } else if (name == "client_max_window_bits") {
      if (words.has_client_bits || (!value && !is_offer)) return std::nullopt;
      words.has_client_bits = true;
      if (value) words.client_bits = bits_in(*value);
      if (value && !words.client_bits) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return words;
}

constexpr std::string_view deflate_name = "permessage-deflate";

std::string deflate_line(const websocket_deflate& agreed, bool says_client_bits) {
  std::string made(deflate_name);
  if (agreed.server_no_context_takeover) made += "; server_no_context_takeover";
  if (agreed.client_no_context_takeover) made += "; client_no_context_takeover";
  if (agreed.server_max_window_bits < bits_most) {
    made += "; server_max_window_bits=" + std::to_string(agreed.server_max_window_bits);
  }
  if (says_client_bits) {
    made += "; client_max_window_bits";
    if (agreed.client_max_window_bits < bits_most)
      made += "=" + std::to_string(agreed.client_max_window_bits);
  }
  return made;
}

// Answers one offer; std::nullopt when it is declined.
std::optional<websocket_deflate> accept(const extension& offer, const websocket_deflate& ours,
                                        std::string& line) {
  const std::optional<deflate_words> words = words_of(offer, true);
  if (!words || words->server_bits.value_or(bits_most) < our_bits_least) return std::nullopt;
  websocket_deflate agreed = ours;
  agreed.server_no_context_takeover |= words->server_forgets;
  agreed.client_no_context_takeover |= words->client_forgets;
  agreed.server_max_window_bits =
      std::min(ours.server_max_window_bits, words->server_bits.value_or(bits_most));
  agreed.client_max_window_bits = bits_most;  // a client that did not name it cannot be limited
  if (words->has_client_bits) {
    agreed.client_max_window_bits =
        std::min(ours.client_max_window_bits, words->client_bits.value_or(bits_most));
  }
  line = deflate_line(agreed, agreed.client_max_window_bits < bits_most);
  // The largest window is also confirmed when the client asked for it.
  if (words->server_bits && agreed.server_max_window_bits == bits_most)
    line += "; server_max_window_bits=15";
  return agreed;
}

void check_bits(const char* name, int bits) {
  if (bits >= our_bits_least && bits <= bits_most) return;
  throw option_error("troupe: http::websocket_deflate::" + std::string(name) + " is " +
                     std::to_string(bits) + ": choose from 9 to 15 (zlib has no window of 8 bits)");
}
void check_level(const char* name, int level) {
  if (level >= 1 && level <= 9) return;
  throw option_error("troupe: http::websocket_deflate::" + std::string(name) + " is " +
                     std::to_string(level) + ": choose from 1 to 9");
}

std::string take_protocol(const fields& answer, const websocket_options& options, std::string& to) {
  std::vector<std::string_view> named;
  if (!read_protocols(answer, named) || named.size() > 1)
    return "its Sec-WebSocket-Protocol is no single name";
  if (named.empty()) {
    if (!options.require_subprotocol) return "";
    return "it chose none of the subprotocols " + joined(options.subprotocols);
  }
  to = named.front();
  if (std::find(options.subprotocols.begin(), options.subprotocols.end(), to) !=
      options.subprotocols.end())
    return "";
  return "it chose the subprotocol " + to + ", which was not offered";
}

std::string take_deflate(const extension& said, const websocket_deflate& ours,
                         websocket_deflate& agreed) {
  const std::optional<deflate_words> words = words_of(said, false);
  if (!words) return "its parameters of permessage-deflate are malformed";
  if (ours.server_no_context_takeover && !words->server_forgets)
    return "it does not confirm server_no_context_takeover";
  if (words->server_bits.value_or(bits_most) > ours.server_max_window_bits) {
    return "it does not confirm server_max_window_bits=" +
           std::to_string(ours.server_max_window_bits);
  }
  agreed = ours;
  agreed.server_no_context_takeover = words->server_forgets;
  agreed.client_no_context_takeover |= words->client_forgets;
  agreed.server_max_window_bits = words->server_bits.value_or(bits_most);
  agreed.client_max_window_bits =
      std::min(ours.client_max_window_bits, words->client_bits.value_or(bits_most));
  return "";
}

}  // namespace

void check_options(const websocket_options& options) {
  for (const std::string& name : options.subprotocols) {
    if (!is_token(name)) {
      throw option_error("troupe: http::websocket_options::subprotocols has '" + name +
                         "': a name is made of letters, digits and !#$%&'*+-.^_`|~");
    }
    if (std::count(options.subprotocols.begin(), options.subprotocols.end(), name) > 1) {
      throw option_error("troupe: http::websocket_options::subprotocols names '" + name +
                         "' twice: name it once");
    }
  }
  if (options.require_subprotocol && options.subprotocols.empty()) {
    throw option_error(
        "troupe: http::websocket_options::require_subprotocol needs subprotocols: name one at "
        "least");
  }
  if (!options.deflate) return;
  check_bits("server_max_window_bits", options.deflate->server_max_window_bits);
  check_bits("client_max_window_bits", options.deflate->client_max_window_bits);
  check_level("level", options.deflate->level);
  check_level("memory_level", options.deflate->memory_level);
}

std::string accept_terms(const fields& request, const websocket_options& options,
                         websocket_terms& terms, std::string& lines) {
  std::vector<std::string_view> offered;
  if (!read_protocols(request, offered))
    return "Sec-WebSocket-Protocol is no list of different names";
  std::vector<extension> extensions;
  if (!read_extensions(request, extensions))
    return "Sec-WebSocket-Extensions is no list of extensions";
  for (const std::string& name : options.subprotocols) {
    if (std::find(offered.begin(), offered.end(), name) == offered.end()) continue;
    terms.subprotocol = name;
    append_field(lines, "Sec-WebSocket-Protocol", name, "websocket_options");
    break;
  }
  if (options.require_subprotocol && terms.subprotocol.empty()) {
    return "this WebSocket speaks " + joined(options.subprotocols) +
           ": offer one of them in Sec-WebSocket-Protocol";
  }
  for (const extension& offer : extensions) {
    if (!options.deflate || offer.name != deflate_name) continue;
    std::string line;
    terms.deflate = accept(offer, *options.deflate, line);
    if (!terms.deflate) continue;
    append_field(lines, "Sec-WebSocket-Extensions", line, "websocket_options");
    break;
  }
  return "";
}

std::string offer_lines(const websocket_options& options) {
  std::string lines;
  if (!options.subprotocols.empty())
    append_field(lines, "Sec-WebSocket-Protocol", joined(options.subprotocols),
                 "websocket_options");
  if (options.deflate)
    append_field(lines, "Sec-WebSocket-Extensions", deflate_line(*options.deflate, true),
                 "websocket_options");
  return lines;
}

std::string take_terms(const fields& answer, const websocket_options& options,
                       websocket_terms& terms) {
  std::string wrong = take_protocol(answer, options, terms.subprotocol);
  if (!wrong.empty()) return wrong;
  std::vector<extension> extensions;
  if (!read_extensions(answer, extensions))
    return "its Sec-WebSocket-Extensions is no list of extensions";
  for (const extension& taken : extensions) {
    if (!options.deflate || taken.name != deflate_name || terms.deflate) {
      return "it uses the extension " + std::string(taken.name) +
             ", which was not offered, or twice";
    }
    terms.deflate.emplace();
    wrong = take_deflate(taken, *options.deflate, *terms.deflate);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace troupe::http
