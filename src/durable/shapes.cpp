// shapes: whether values that were stored with one shape can be read with another.
//
// The two shapes are read side by side. The program's is a full one (codec.hpp, `naming`); the
// stored one may be of an earlier version, with fewer names or none, and then these do not count.
// How much of the names counts is decided for each alternative of a variant and each element of a
// list: as little as it takes for the stored one to be that one, and none of the others.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "durable/type_names.hpp"
#include "troupe/durable/codec.hpp"

namespace troupe::durable::parts {
namespace {

using std::string_view;

// How much of the name of a type counts, and how much of it is known.
enum class extent : std::uint8_t {
  none,
  short_name,
  qualified,  // without versions
  spelled,
  whole,  // and the text of an alternative without a name of its own, such as a container
};

struct stored_name {
  extent known = extent::none;
  std::string text;
};

bool take(string_view& from, string_view text) noexcept {
  if (!from.starts_with(text)) return false;
  from.remove_prefix(text.size());
  return true;
}
bool take_both(string_view& now, string_view& before, string_view text) noexcept {
  return take(now, text) && take(before, text);
}

constexpr string_view enum_word = "enum ", codec_word = "codec\"", ends = ",|)]}>?";

// The parts between brackets. The opening bracket was taken; takes the closing one.
std::vector<string_view> take_parts(string_view& from) {
  std::vector<string_view> parts;
  const char* begin = from.data();
  int depth = 0;
  while (!from.empty()) {
    const char letter = from.front();
    if (letter == '"') {
      take_quoted(from);
      continue;
    }
    const bool is_end = depth == 0 && string_view(",|)>").find(letter) != string_view::npos;
    if (is_end) parts.emplace_back(begin, static_cast<std::size_t>(from.data() - begin));
    if (string_view("([{<").find(letter) != string_view::npos) ++depth;
    if (string_view(")]}>").find(letter) != string_view::npos) --depth;
    from.remove_prefix(1);
    if (is_end) begin = from.data();
    if (depth < 0) break;
  }
  return parts;
}

// The text up to there, if it may be a name.
std::optional<std::string> name_up_to(string_view text, std::size_t size) {
  if (size > text.size() || text.substr(0, size).find_first_of("\"(){}[]<>|,?:=") != text.npos)
    return std::nullopt;
  return std::string(text.substr(0, size));
}

// For a type with a codec whose shape was stored with or without quotes: the text in front of it.
std::optional<std::string> name_before_codec(string_view before, string_view shape) {
  const std::string in_quotes = quoted(shape);
  const std::size_t at = before.find(in_quotes);
  string_view name = before.substr(0, at);
  if (at != before.npos && (at == 0 || name.starts_with('"'))) {
    if (at > 0) take_quoted(name);
    if (name.empty()) return std::string(before.substr(0, at));
  }
  const std::optional<std::string> found = name_up_to(before, at);
  return found ? found : name_up_to(before, before.find(shape));
}

// Of a type whose shape in the program is `now`, from behind the name.
stored_name take_stored_name(string_view& before, string_view now) {
  std::optional<std::string> name;
  if (now.starts_with('{')) {
    name = name_up_to(before, before.find('{'));
  } else if (now.starts_with(enum_word)) {
    name = name_up_to(before, before.find(enum_word));
  } else if (now.starts_with(codec_word)) {
    now.remove_prefix(codec_word.size() - 1);
    name = name_before_codec(before, take_quoted(now));
  } else {
    const string_view shape = now.substr(0, now.find_first_of(ends));
    const string_view word = before.substr(0, before.find_first_of(ends));
    if (word.ends_with(shape)) name = name_up_to(word, word.size() - shape.size());
  }
  if (!name && before.starts_with('"')) {
    string_view rest = before;
    take_quoted(rest);
    name = std::string(before.substr(0, before.size() - rest.size()));
  }
  if (!name || name->empty()) return {};
  before.remove_prefix(name->size());
  if (!name->starts_with('"')) return {extent::short_name, std::move(*name)};
  string_view in_quotes = *name;
  std::string text = take_quoted(in_quotes);
  return {text.starts_with("::") ? extent::qualified : extent::spelled, std::move(text)};
}

bool is_named(extent how, const std::string& now, const stored_name& before) {
  how = std::min({how, before.known, extent::spelled});
  if (how == extent::none) return true;
  if (how == extent::spelled) return now == before.text;
  if (how == extent::qualified)
    return spelled_alike(now, false) == (before.known == extent::qualified
                                             ? before.text.substr(2)
                                             : spelled_alike(before.text, false));
  if (before.known > extent::short_name) return short_name(now) == short_name(before.text);
  return short_name(now) == before.text || short_name_before(now) == before.text;
}

bool has_enumerator(string_view list, string_view wanted) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == wanted) return true;
    take(list, ",");
  }
  return false;
}

// The names of a type in the program and in the stored shape.
struct name_pair {
  std::string now;
  stored_name before;
};

// Whether a name is where another name was, and that name is somewhere else: two types of one
// layout were exchanged, as in tuple<user_id, optional<order_id>>. Other names may have changed.
bool are_exchanged(const std::vector<name_pair>& names) {
  for (const extent how : {extent::short_name, extent::qualified, extent::spelled}) {
    const auto has_moved = [&](const name_pair& pair) {
      return pair.before.known >= how && !is_named(how, pair.now, pair.before);
    };
    for (const name_pair& pair : names) {
      if (!has_moved(pair)) continue;
      const bool is_elsewhere = std::ranges::any_of(names, [&](const name_pair& other) {
        return has_moved(other) && is_named(how, other.now, pair.before);
      });
      if (is_elsewhere) return true;
    }
  }
  return false;
}

// Each function takes the texts that it compares, if it returns true.
class comparison {
 public:
  explicit comparison(growth added) noexcept : added_(added) {}

  // A type that is the only one at its place: a member, or an object that is described as a whole.
  bool reads_alone(string_view& now, string_view& before) {
    std::vector<name_pair> outer = std::exchange(names_, {});
    const bool is_read = reads(now, before, extent::none) && !are_exchanged(names_);
    names_ = std::move(outer);
    return is_read;
  }

 private:
  bool reads(string_view& now, string_view& before, extent how) {
    if (take(now, "=")) {
      const std::string name = take_quoted(now);
      take(now, ":");
      const bool is_full = take(before, "=");
      string_view rest = before;
      const bool is_same = rest.starts_with('"') && take_quoted(rest) == name;
      if (is_full && !is_same && how == extent::whole) return false;
      // In an exact shape it may be the name of a part that is there.
      if (is_full || is_same) before = rest;
      if (is_full && !take(before, ":")) return false;
    }
    if (now.starts_with('"')) {
      names_.push_back({take_quoted(now), {}});
      names_.back().before = take_stored_name(before, now);
      if (!is_named(how, names_.back().now, names_.back().before)) return false;
    }
    if (!reads_body(now, before, how)) return false;
    while (now.starts_with('?')) {
      if (!take_both(now, before, "?")) return false;
    }
    return true;
  }

  bool reads_body(string_view& now, string_view& before, extent how) {
    if (now.starts_with(enum_word)) return reads_enumeration(now, before);
    if (now.starts_with(codec_word)) return reads_codec(now, before);
    if (now.starts_with("(|")) return reads_variant(now, before, how);
    while (!now.empty() && ends.find(now.front()) == ends.npos) {
      const char letter = now.front();
      if (!before.starts_with(letter)) return false;
      if (letter == '(' || letter == '<') return reads_list(now, before, how);
      now.remove_prefix(1);
      before.remove_prefix(1);
      if (letter == '{') return reads_members(now, before);
      if (letter == '[') return reads(now, before, how) && take_both(now, before, "]");
    }
    return true;
  }

  // Plain shapes have no list, and that counts as an empty one.
  bool reads_enumeration(string_view& now, string_view& before) const {
    const string_view type = take_until(now, '{');
    if (!take(before, type) || !take(now, "{")) return false;
    const string_view all = take_until(now, '}');
    take(now, "}");
    if (!take(before, "{")) return true;
    string_view former = take_until(before, '}');
    while (!former.empty() && !ignores_enumerators_) {
      if (!has_enumerator(all, take_until(former, ','))) return false;
      take(former, ",");
    }
    return take(before, "}");
  }

  // Earlier versions stored it without the word, and without quotes if it looked like no other.
  static bool reads_codec(string_view& now, string_view& before) {
    now.remove_prefix(codec_word.size() - 1);
    const std::string shape = take_quoted(now);
    take(before, codec_word.substr(0, codec_word.size() - 1));
    return take(before, quoted(shape)) || take(before, shape);
  }

  bool reads_members(string_view& now, string_view& before) {
    while (!now.starts_with('}')) {
      if (!take(before, take_until(now, ':')) || !take_both(now, before, ":")) return false;
      if (!reads(now, before, extent::none)) return false;
      if (now.starts_with(',') && !take_both(now, before, ",")) return false;
    }
    return take_both(now, before, "}");
  }

  bool reads_list(string_view& now, string_view& before, extent how) {
    const bool is_method = now.front() == '(';
    now.remove_prefix(1);
    before.remove_prefix(1);
    const std::vector<string_view> elements = take_parts(now);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i > 0 && !take(before, ",")) return false;
      if (!reads_part(elements, i, before, how, extent::spelled)) return false;
    }
    return take(before, is_method ? ")" : ">");
  }

  bool reads_variant(string_view& now, string_view& before, extent how) {
    now.remove_prefix(2);
    if (!take(before, "(")) return false;
    take(before, "|");
    const std::vector<string_view> alternatives = take_parts(now);
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      if (i > 0 && added_ == growth::alternatives && before.starts_with(')')) break;
      if (i > 0 && !take(before, "|")) return false;
      const extent least = alternatives[i].starts_with('"') ? extent::short_name : extent::none;
      if (!reads_part(alternatives, i, before, std::max(how, least), extent::whole)) return false;
    }
    return take(before, ")");
  }

  // As much of the names counts as it takes for no other part of the program to read the same. Of
  // alternatives the enumerators do not help: they may have been added to the right one only.
  bool reads_part(const std::vector<string_view>& parts, std::size_t part, string_view& before,
                  extent how, extent most) {
    const std::size_t names = names_.size();
    for (;; how = static_cast<extent>(static_cast<int>(how) + 1)) {
      names_.resize(names);
      string_view now = parts[part], rest = before;
      if (!reads(now, rest, how) || !now.empty()) return false;
      const string_view taken = before.substr(0, before.size() - rest.size());
      if (how >= most || taken == parts[part] ||
          !is_read_elsewhere(parts, part, taken, how, most)) {
        before = rest;
        return true;
      }
    }
  }

  bool is_read_elsewhere(const std::vector<string_view>& parts, std::size_t part,
                         string_view before, extent how, extent most) const {
    comparison loose(added_);
    loose.ignores_enumerators_ = ignores_enumerators_ || most == extent::whole;
    return std::ranges::any_of(parts, [&](string_view now) {
      string_view rest = before;
      return now != parts[part] && loose.reads(now, rest, how) && now.empty() && rest.empty();
    });
  }

  std::vector<name_pair> names_;  // of the type that is alone, which is compared now
  growth added_;
  bool ignores_enumerators_ = false;
};

}  // namespace

bool reads_shape(string_view now, string_view before, growth added) {
  comparison compares(added);
  if (!compares.reads_alone(now, before)) return false;
  // The result of a method.
  if (now.starts_with("->") &&
      (!take_both(now, before, "->") || !compares.reads_alone(now, before)))
    return false;
  return now.empty() && before.empty();
}

}  // namespace troupe::durable::parts
