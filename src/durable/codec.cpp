#include "troupe/durable/codec.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "durable/type_names.hpp"

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

std::string join(std::span<const std::string> texts, char between) {
  std::string all;
  for (const std::string& text : texts) {
    if (&text != texts.data()) all += between;
    all += text;
  }
  return all;
}

// Which a shape of a codec is, unless something would be looked for in it.
bool is_atom(std::string_view shape) noexcept {
  return shape.find_first_of("\"(){}[]<>|,?:=") == shape.npos && !shape.starts_with("enum ");
}

[[noreturn]] void refuse_alike(const char* type) {
  throw usage_error(std::string("troupe: durable: two alternatives of a variant are both called ") +
                    type + ", and nothing tells stored values of them apart; rename one of them");
}

// Texts of two types are alike if each reads the other, whatever enumerators they get.
void check_names(std::span<const shape_part> all, const std::vector<std::string>& texts) {
  std::map<std::string, const void*> types;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [known, is_new] = types.try_emplace(without_enumerators(texts[i]), all[i].tag);
    if (known->second != all[i].tag) refuse_alike(all[i].type);
  }
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
        refuse_alike(all[i].type);
      }
      names[i] = static_cast<naming>(static_cast<int>(names[i]) + 1);
      texts[i] = all[i].text(names[i]);
      changed = true;
    }
  }
  return texts;
}

}  // namespace

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
  if (how >= naming::full) return is_atom(shape) ? std::string(shape) : "codec" + quoted(shape);
  const bool is_plain = shape.find("enum ") == shape.npos && shape.find('"') == shape.npos;
  return how <= naming::short_names || is_plain ? std::string(shape) : quoted(shape);
}

std::string variant_shape(naming how, std::span<const shape_part> alternatives) {
  std::vector<std::string> texts;
  if (how >= naming::full) {
    for (const shape_part& each : alternatives) {
      const std::string name = "=" + quoted(spelled_alike(each.type, true)) + ":";
      texts.push_back((each.is_spelled ? std::string() : name) + each.text(naming::full_part));
    }
    check_names(alternatives, texts);
    return "(|" + join(texts, '|') + ')';
  }
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

// An only element needs no name, unless it is a part of something that does.
std::string list_shape(naming how, std::span<const shape_part> elements) {
  if (how > naming::short_names && how < naming::full)
    return join(distinct_texts(how, elements, naming::with_spelled), ',');
  if (how == naming::full && elements.size() > 1) how = naming::full_part;
  std::vector<std::string> texts;
  for (const shape_part& each : elements) texts.push_back(each.text(how));
  return join(texts, ',');
}

}  // namespace parts

std::uint64_t fingerprint_of(std::string_view shape) noexcept {
  std::uint64_t hash = 14'695'981'039'346'656'037u;
  for (const char character : shape) {
    hash ^= static_cast<unsigned char>(character);
    hash *= 1'099'511'628'211u;
  }
  return hash;
}

}  // namespace troupe::durable
