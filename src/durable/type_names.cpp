#include "durable/type_names.hpp"

#include <algorithm>
#include <array>

#include "base/text/digit.hpp"

namespace troupe::durable::parts {
namespace {

using base::is_digit;

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

}  // namespace

std::string_view take_until(std::string_view& from, char letter) noexcept {
  const std::string_view taken = from.substr(0, from.find(letter));
  from.remove_prefix(taken.size());
  return taken;
}

std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char letter : text) all.append(letter == '"' ? 2 : 1, letter);
  return all + '"';
}

std::string take_quoted(std::string_view& from) {
  std::string text;
  from.remove_prefix(1);
  for (;;) {
    text += take_until(from, '"');
    if (!from.starts_with("\"\"")) break;
    text += '"';
    from.remove_prefix(2);
  }
  from.remove_prefix(std::min<std::size_t>(from.size(), 1));
  return text;
}

std::string without_enumerators(std::string_view shape) {
  constexpr std::string_view word = "enum ";
  std::string text;
  while (!shape.empty()) {
    if (shape.front() == '"') {
      text += quoted(take_quoted(shape));
    } else if (shape.starts_with(word)) {
      text += take_until(shape, '{');
      take_until(shape, '}');
    } else {
      text += shape.front();
      shape.remove_prefix(1);
    }
  }
  return text;
}

std::string short_name_before(std::string_view type) {
  type = type.substr(0, type.find('<'));
  const std::size_t colon = type.rfind(':');
  if (colon != std::string_view::npos) type.remove_prefix(colon + 1);
  return std::string(without_version(type));
}

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

}  // namespace troupe::durable::parts
