#include "troupe/durable/codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <utility>

namespace troupe::durable {

void parts::refuse(const char* why) {
  throw decode_error("troupe: durable: " + std::string(why) +
                     "; the bytes are damaged, or of another type");
}

void parts::refuse_enumerator(const char* type, std::string value, bool is_read) {
  const std::string name = type;
  const std::string text =
      "troupe: durable: the value " + std::move(value) + " of the enumeration " + name +
      " cannot be " + (is_read ? "read" : "stored") +
      ": the shape does not know its enumerator, and nothing would tell when it is moved or "
      "removed. List the enumerators in troupe::reflect::listed_enumerators<" +
      name +
      ">; if the values are numbers without enumerators, specialize troupe::reflect::is_number<" +
      name + "> as true";
  if (is_read) throw decode_error(text);
  throw usage_error(text);
}

void writer::count(std::size_t size) {
  if (size > std::numeric_limits<std::uint32_t>::max())
    throw usage_error("troupe: durable: a container has more than 4,294,967,295 elements");
  number(static_cast<std::uint32_t>(size));
}

void reader::take(std::span<std::byte> into) {
  if (into.size() > rest_.size()) parts::refuse("the bytes end too early");
  std::ranges::copy(rest_.first(into.size()), into.begin());
  rest_ = rest_.subspan(into.size());
}

std::size_t reader::count() {
  const std::size_t size = number<std::uint32_t>();
  if (size > rest_.size()) parts::refuse("a count is larger than what follows it");
  return size;
}

void reader::check_end() const {
  if (!rest_.empty()) parts::refuse("bytes follow the value");
}

namespace parts {
namespace {

bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

// Takes the text up to that letter, which follows.
std::string_view take_until(std::string_view& from, char letter) noexcept {
  const std::string_view taken = from.substr(0, from.find(letter));
  from.remove_prefix(taken.size());
  return taken;
}

bool has_enumerator(std::string_view list, std::string_view wanted) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == wanted) return true;
    if (!list.empty()) list.remove_prefix(1);
  }
  return false;
}

// Both lists begin behind "enum TYPE{", and are taken.
bool keeps_enumerators(std::string_view& now, std::string_view& before) noexcept {
  const std::string_view all = take_until(now, '}');
  std::string_view former = take_until(before, '}');
  while (!former.empty()) {
    if (!has_enumerator(all, take_until(former, ','))) return false;
    if (!former.empty()) former.remove_prefix(1);
  }
  return true;
}

// A text in which nothing is looked for.
std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char letter : text) all.append(letter == '"' ? 2 : 1, letter);
  return all + '"';
}

std::string join(std::span<const std::string> texts, char between) {
  std::string all;
  for (const std::string& text : texts) {
    if (&text != texts.data()) all += between;
    all += text;
  }
  return all;
}

// "Circle" of "CircleV1", "Circle_v1" and "Circle_V1": a struct that is kept to read former values
// has a name of its own.
std::string_view without_version(std::string_view name) noexcept {
  std::string_view stem = name;
  while (!stem.empty() && is_digit(stem.back())) stem.remove_suffix(1);
  if (stem.size() == name.size()) return name;
  for (const std::string_view mark : {"_v", "_V", "V"}) {
    if (stem.size() > mark.size() && stem.ends_with(mark))
      return stem.substr(0, stem.size() - mark.size());
  }
  return name;
}

// The name in a shape with `short_names`, which is stored: it stays as it is, although it takes a
// type within a class template for the template.
std::string short_name_before(std::string_view type) {
  type = type.substr(0, type.find('<'));
  const std::size_t colon = type.rfind(':');
  if (colon != std::string_view::npos) type.remove_prefix(colon + 1);
  return std::string(without_version(type));
}

// "Circle" of "shop::Circle", "shop::v1::Circle", "shop::Circle<int>" and "Shop<int>::Circle".
std::string_view short_name(std::string_view type) noexcept {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (std::string_view("<([{").find(type[i]) != std::string_view::npos) ++depth;
    if (std::string_view(">)]}").find(type[i]) != std::string_view::npos) --depth;
    if (type[i] == ':' && depth == 0) begin = i + 1;
  }
  type.remove_prefix(begin);
  return without_version(type.substr(0, type.find('<')));
}

bool is_word_letter(char letter) noexcept {
  return is_digit(letter) || letter == '_' || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z') || static_cast<unsigned char>(letter) > 127;
}

// GCC writes "long unsigned int" where clang writes "unsigned long".
void add_integer(std::string& to, std::string_view words) {
  const bool is_unsigned = words.find("unsigned") != std::string_view::npos;
  std::string size;
  while (!words.empty()) {
    const std::string_view word = take_until(words, ' ');
    if (!words.empty()) words.remove_prefix(1);
    if (word == "long" || word == "short" || word == "char") size += ' ' + std::string(word);
    if (word == "signed") size = " signed" + size;
  }
  if (size.starts_with(" signed") && size != " signed char") size.erase(0, 7);
  if (size.empty()) size = " int";
  to += is_unsigned ? "unsigned" + size : size.substr(1);
}

// A name as both compilers spell it, for what they spell alike: template arguments that are values,
// and local types, may differ.
std::string spelled_alike(std::string_view type, bool keeps_versions) {
  static constexpr std::array<std::string_view, 5> integer_words{"long", "unsigned", "short", "int",
                                                                 "signed"};
  const auto take_word = [&type] {
    const auto end = std::ranges::find_if_not(type, is_word_letter);
    const std::string_view word(type.begin(), end);
    type.remove_prefix(word.size());
    return word;
  };
  std::string text;
  while (!type.empty()) {
    for (const std::string_view unnamed : {"{anonymous}", "(anonymous namespace)", "<unnamed>"}) {
      if (!type.starts_with(unnamed)) continue;
      type.remove_prefix(unnamed.size());
      text += "{anonymous}";
    }
    const bool after_word = !text.empty() && is_word_letter(text.back());
    if (type.empty()) break;
    if (!is_word_letter(type.front())) {
      const bool between_words =
          type.front() == ' ' && after_word && type.size() > 1 && is_word_letter(type[1]);
      if (type.front() != ' ' || between_words) text += type.front();
      type.remove_prefix(1);
      continue;
    }
    const char* const begin = type.data();
    std::string_view word = take_word();
    if (std::ranges::count(integer_words, word) != 0) {
      const char* end = type.data();
      while (type.starts_with(' ') && type.size() > 1 && is_word_letter(type[1])) {
        const std::string_view rest = type;
        type.remove_prefix(1);
        const std::string_view next = take_word();
        if (std::ranges::count(integer_words, next) == 0 && next != "char") {
          type = rest;
          break;
        }
        end = type.data();
      }
      add_integer(text, std::string_view(begin, end));
      continue;
    }
    const bool is_scope = type.starts_with("::");
    const bool is_version =
        word.size() > 1 && word.front() == 'v' && std::ranges::all_of(word.substr(1), is_digit);
    if (is_scope && (word.starts_with("__") || (is_version && !keeps_versions))) {
      type.remove_prefix(2);
      continue;
    }
    text += keeps_versions ? word : without_version(word);
  }
  return text;
}

// Those whose text a part of another type has as well.
std::vector<std::size_t> alike(std::span<const shape_part> all,
                               const std::vector<std::string>& texts) {
  std::map<std::string_view, std::pair<const void*, bool>> types;  // the first, and whether it is
                                                                   // the only one
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [known, is_new] = types.try_emplace(texts[i], all[i].tag, true);
    known->second.second &= known->second.first == all[i].tag;
  }
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!types[texts[i]].second) found.push_back(i);
  }
  return found;
}

// Texts that differ for types that differ, each with as few names as that takes. Those that are
// alike get more names, until `most`; elements of a list, whose values are then the same, stay
// alike.
std::vector<std::string> distinct_texts(naming how, std::span<const shape_part> all, naming most) {
  std::vector<naming> names;
  std::vector<std::string> texts;
  for (const shape_part& each : all) {
    const bool is_named = most == naming::with_container && each.is_named;
    names.push_back(is_named ? std::max(how, naming::with_short) : how);
    texts.push_back(each.text(names.back()));
  }
  for (bool changed = true; std::exchange(changed, false);) {
    for (const std::size_t i : alike(all, texts)) {
      if (names[i] >= most) {
        if (most == naming::with_spelled) continue;
        throw usage_error(
            std::string("troupe: durable: two alternatives of a variant are both called ") +
            all[i].type + ", and nothing tells stored values of them apart; rename one of them");
      }
      names[i] = static_cast<naming>(static_cast<int>(names[i]) + 1);
      texts[i] = all[i].text(names[i]);
      changed = true;
    }
  }
  return texts;
}

}  // namespace

bool reads_shape(std::string_view now, std::string_view before) noexcept {
  constexpr std::string_view word = "enum ";
  bool is_quoted = false;
  while (!now.empty() && !before.empty()) {
    const bool is_enum = !is_quoted && now.starts_with(word) && before.starts_with(word);
    if (now.front() != before.front()) return false;
    if (!is_enum) {
      if (now.front() == '"') is_quoted = !is_quoted;
      now.remove_prefix(1);
      before.remove_prefix(1);
      continue;
    }
    if (take_until(now, '{') != take_until(before, '{')) return false;
    if (now.empty() || before.empty()) break;
    now.remove_prefix(1);
    before.remove_prefix(1);
    if (!keeps_enumerators(now, before)) return false;
  }
  return now.empty() && before.empty();
}

std::string name_of_type(naming how, std::string_view type) {
  if (how == naming::with_short) return std::string(short_name(type));
  if (how == naming::with_qualified) return quoted("::" + spelled_alike(type, false));
  return quoted(spelled_alike(type, true));
}

std::string enum_shape(naming how, std::string under, bool is_signed,
                       std::span<const reflect::named_value> enumerators) {
  std::string text = "enum " + std::move(under);
  if (how == naming::none) return text;
  text += '{';
  for (const reflect::named_value& each : enumerators) {
    const auto value = static_cast<std::int64_t>(each.bits);
    const bool is_short = (value >= (is_signed ? -16 : 0) && value <= 127) ||
                          (value > 127 && std::has_single_bit(each.bits));
    if (how == naming::short_names && !is_short) continue;
    if (text.back() != '{') text += ',';
    text += each.name;
    text += '=' + (is_signed ? std::to_string(value) : std::to_string(each.bits));
  }
  return text + '}';
}

std::string codec_shape(naming how, std::string_view shape) {
  const bool is_plain = shape.find("enum ") == shape.npos && shape.find('"') == shape.npos;
  return how <= naming::short_names || is_plain ? std::string(shape) : quoted(shape);
}

std::string variant_shape(naming how, std::span<const shape_part> alternatives) {
  std::vector<std::string> texts;
  if (how <= naming::short_names) {
    for (const shape_part& each : alternatives) {
      const bool is_named = each.is_named && how == naming::short_names;
      texts.push_back((is_named ? short_name_before(each.type) : std::string()) + each.text(how));
    }
  } else {
    texts = distinct_texts(how, alternatives, naming::with_container);
  }
  return '(' + join(texts, '|') + ')';
}

std::string list_shape(naming how, std::span<const shape_part> elements) {
  if (how > naming::short_names)
    return join(distinct_texts(how, elements, naming::with_spelled), ',');
  std::vector<std::string> texts;
  for (const shape_part& each : elements) texts.push_back(each.text(how));
  return join(texts, ',');
}

}  // namespace parts

std::uint64_t fingerprint_of(std::string_view shape) noexcept {
  std::uint64_t hash = 14'695'981'039'346'656'037u;
  for (const char one : shape) {
    hash ^= static_cast<unsigned char>(one);
    hash *= 1'099'511'628'211u;
  }
  return hash;
}

}  // namespace troupe::durable
