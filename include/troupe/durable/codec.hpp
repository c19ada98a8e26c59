// codec: converts values to bytes that outlive the program, without code in their types.
//
// Stored are: bool, integers, enumerations, floating-point numbers, std::string, durations, system
// and local times and the fields of a calendar (alone or as dates) of std::chrono, std::optional,
// std::variant, std::array, std::pair, std::tuple, containers of such values (maps and sets as
// well), and aggregates of them. Any other type defines its stored form by a specialization of
// durable::codec. A type that contains itself also needs a specialization.
//
// Only those values of an enumeration are stored whose enumerators the shape contains: all
// enumerators of a type of one byte, enumerators from -512 to 2047, and others that are found or
// listed (reflect/enumerators.hpp). Another value is refused, with usage_error where it is written
// and decode_error where it is read, since a moved or removed enumerator would go unnoticed. An
// enumeration without enumerators holds numbers; specialize reflect::is_number for another
// enumeration of numbers.
//
// Thread: any. Cost: one pass over the value. Numbers have a fixed width and are little-endian;
// texts and containers begin with a count of four bytes. The bytes do not name the members; the
// shape does. Code that stores the bytes also stores the fingerprint of the shape.
//
// Example:
//     struct Account {
//       std::string owner;
//       std::int64_t cents = 0;
//     };
//     int main() {
//       const std::vector<std::byte> bytes = troupe::durable::encode(Account{"Ada", 500});
//       std::cout << troupe::durable::decode<Account>(bytes).cents << '\n';  // 500
//       std::cout << troupe::durable::shape_of<Account>() << '\n';  // {owner:text,cents:i8}
//     }
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/base/type_name.hpp"
#include "troupe/durable/calendar.hpp"
#include "troupe/reflect/enumerators.hpp"
#include "troupe/reflect/members.hpp"

namespace troupe::durable {

// The bytes do not hold a value of the type: they are damaged, or of another shape.
class decode_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::peer, verdict::effect::none, verdict::again::never};
  }
};

class writer;
class reader;

// Defines how a type that is not listed above is stored. A specialization has
//     static constexpr std::string_view shape;     // changes when the bytes change
//     static void write(writer& to, const T& value);
//     static T read(reader& from);                 // throws decode_error
template <class T>
struct codec;

namespace parts {

[[noreturn]] void refuse(const char* why);
[[noreturn]] void refuse_enumerator(const char* type, std::string value, bool is_read);

template <class T>
concept has_codec = requires {
  std::string_view(codec<T>::shape);
};
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T>
inline constexpr bool is_duration = false;
template <class R, class P>
inline constexpr bool is_duration<std::chrono::duration<R, P>> = true;
template <class T>
inline constexpr bool is_time = false;
template <class D>
inline constexpr bool is_time<std::chrono::sys_time<D>> = true;
template <class D>
inline constexpr bool is_time<std::chrono::local_time<D>> = true;
template <class T>
concept tuple_like = requires {
  std::tuple_size<T>::value;
};
// A map's elements are read as pairs whose key can be changed.
template <class T>
struct element {
  using type = T;
};
template <class K, class V>
struct element<std::pair<const K, V>> {
  using type = std::pair<K, V>;
};
template <class T>
concept container = requires(T& all, typename element<typename T::value_type>::type item) {
  all.begin();
  all.end();
  all.size();
  all.insert(all.end(), std::move(item));
};

// A type whose bytes can be copied at once.
template <class T>
inline constexpr bool is_byte_string = false;
template <>
inline constexpr bool is_byte_string<std::string> = true;
template <>
inline constexpr bool is_byte_string<std::vector<std::byte>> = true;

template <std::size_t Size>
struct member_name {
  char text[Size + 1] = {};
};
template <class T, std::size_t I>
consteval auto name_of_member() {
  constexpr std::string_view name = reflect::member_names<T>[I];
  member_name<name.size()> result;
  for (std::size_t at = 0; at < name.size(); ++at) result.text[at] = name[at];
  return result;
}

// `Within` are the structs of which T is a part.
template <class T, class... Within>
consteval bool is_storable();
// The compiler's note on this function names the struct, the member and its type.
template <class Struct, auto Member, class Type, class... Within>
consteval bool check_member() {
  static_assert(is_storable<Type, Within...>(),
                "troupe: this member cannot be stored; the kinds are listed in "
                "troupe/durable/codec.hpp. Specialize durable::codec for its type");
  return is_storable<Type, Within...>();
}
// The compiler's note on this function names the struct.
template <class Struct>
consteval bool check_struct() {
  constexpr std::size_t most = 64;
  constexpr bool has_base = reflect::parts::has_base<Struct>;
  constexpr bool fits = reflect::member_count<Struct> < most ||
                        !reflect::parts::takes<Struct>(std::make_index_sequence<most + 1>());
  static_assert(!has_base,
                "troupe: a struct with a base class cannot be stored; make the base a member, or "
                "specialize durable::codec");
  static_assert(fits,
                "troupe: a struct with more than 64 members cannot be stored; make some of them a "
                "struct, or specialize durable::codec");
  return !has_base && fits;
}
template <class T, class... Within>
consteval bool are_members_storable() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (true && ... &&
            check_member<T, name_of_member<T, I>(), reflect::member_type<T, I>, T, Within...>());
  }
  (std::make_index_sequence<reflect::member_count<T>>());
}
template <class T, class... Within>
consteval bool is_storable() {
  if constexpr (has_codec<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> || is_duration<T> ||
                is_time<T> || calendar_field<T> || std::is_same_v<T, std::monostate>) {
    return !std::is_same_v<T, long double>;
  } else if constexpr (is_optional<T>) {
    return is_storable<typename T::value_type, Within...>();
  } else if constexpr (is_variant<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return sizeof...(I) < 256 &&
             (... && is_storable<std::variant_alternative_t<I, T>, Within...>());
    }
    (std::make_index_sequence<std::variant_size_v<T>>());
  } else if constexpr (tuple_like<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return sizeof...(I) > 0 &&
             (true && ... && is_storable<std::tuple_element_t<I, T>, Within...>());
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (container<T>) {
    return is_storable<std::remove_const_t<typename element<typename T::value_type>::type>,
                       Within...>();
  } else if constexpr ((false || ... || std::is_same_v<T, Within>)) {
    return false;  // it contains itself
  } else if constexpr (reflect::aggregate<T>) {
    if constexpr (check_struct<T>()) return are_members_storable<T, Within...>();
    return false;
  } else {
    return false;
  }
}

}  // namespace parts

// Whether values of T can be stored. For an aggregate with a member that cannot, the compile error
// names the member.
template <class T>
concept storable = parts::is_storable<T>();

namespace parts {
// Refuses a value if the shape cannot show whether it keeps its meaning in later versions.
template <class T>
void check_known(T value, bool is_read) {
  if (!reflect::is_known(value))
    refuse_enumerator(base::type_name<T>(),
                      std::to_string(static_cast<std::underlying_type_t<T>>(value)), is_read);
}
}  // namespace parts

// The destination of a value's bytes.
class writer {
 public:
  writer() = default;
  // Writes behind these bytes.
  explicit writer(std::vector<std::byte> behind) noexcept : bytes_(std::move(behind)) {}

  template <storable T>
  void write(const T& value) {
    using namespace parts;
    if constexpr (has_codec<T>) {
      codec<T>::write(*this, value);
    } else if constexpr (std::is_enum_v<T>) {
      check_known(value, false);
      number(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      number(value);
    } else if constexpr (is_duration<T>) {
      number(value.count());
    } else if constexpr (is_time<T>) {
      number(value.time_since_epoch().count());
    } else if constexpr (calendar_field<T>) {
      write(calendar_form<T>::of(value));
    } else if constexpr (is_optional<T>) {
      number(value.has_value());
      if (value) write(*value);
    } else if constexpr (is_variant<T>) {
      if (value.valueless_by_exception())
        throw usage_error(
            "troupe: durable: a variant without a value cannot be stored: assign it a value "
            "before");
      number(static_cast<std::uint8_t>(value.index()));
      std::visit([this](const auto& alternative) { this->write(alternative); }, value);
    } else if constexpr (tuple_like<T>) {
      std::apply([this](const auto&... each) { (this->write(each), ...); }, value);
    } else if constexpr (is_byte_string<T>) {
      count(value.size());
      append(std::as_bytes(std::span(value.data(), value.size())));
    } else if constexpr (container<T>) {
      count(value.size());
      for (const auto& item : value) write<typename element<typename T::value_type>::type>(item);
    } else if constexpr (std::is_empty_v<T>) {
      number(std::uint8_t{0});  // so that each value takes a byte, which bounds counts
    } else {
      reflect::for_each_member(
          value, [this](std::string_view, const auto& member) { this->write(member); });
    }
  }
  std::vector<std::byte> take() noexcept { return std::move(bytes_); }

 private:
  template <class N>
  void number(N value) {
    auto raw = std::bit_cast<std::array<std::byte, sizeof(N)>>(value);
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
    append(raw);
  }
  void append(std::span<const std::byte> more) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + more.size());
    std::ranges::copy(more, bytes_.begin() + static_cast<std::ptrdiff_t>(before));
  }
  void count(std::size_t size);

  std::vector<std::byte> bytes_;
};

// The source of a value's bytes. Lifetime: as the bytes.
class reader {
 public:
  explicit reader(std::span<const std::byte> from) noexcept : rest_(from) {}

  // Throws decode_error. Memory: at most one element for each byte.
  template <storable T>
  T read() {
    using namespace parts;
    if constexpr (has_codec<T>) {
      return codec<T>::read(*this);
    } else if constexpr (std::is_same_v<T, bool>) {
      const auto value = number<std::uint8_t>();
      if (value > 1) refuse("a bool is neither 0 nor 1");
      return value == 1;
    } else if constexpr (std::is_enum_v<T>) {
      const T value = static_cast<T>(read<std::underlying_type_t<T>>());
      check_known(value, true);
      return value;
    } else if constexpr (std::is_arithmetic_v<T>) {
      return number<T>();
    } else if constexpr (is_duration<T>) {
      return T(number<typename T::rep>());
    } else if constexpr (is_time<T>) {
      return T(typename T::duration(number<typename T::rep>()));
    } else if constexpr (calendar_field<T>) {
      return calendar_form<T>::from(read<typename calendar_form<T>::stored>());
    } else if constexpr (is_optional<T>) {
      if (!read<bool>()) return std::nullopt;
      return read<typename T::value_type>();
    } else if constexpr (is_variant<T>) {
      return alternative<T>(number<std::uint8_t>());
    } else if constexpr (tuple_like<T>) {
      return [this]<std::size_t... I>(std::index_sequence<I...>) {
        return T{this->read<std::tuple_element_t<I, T>>()...};
      }
      (std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (is_byte_string<T>) {
      T all(count(), typename T::value_type{});
      take(std::as_writable_bytes(std::span(all.data(), all.size())));
      return all;
    } else if constexpr (container<T>) {
      T all;
      for (std::size_t left = count(); left > 0; --left)
        all.insert(all.end(), read<typename element<typename T::value_type>::type>());
      return all;
    } else if constexpr (std::is_empty_v<T>) {
      if (number<std::uint8_t>() != 0) refuse("an empty value is not 0");
      return T{};
    } else {
      return [this]<std::size_t... I>(std::index_sequence<I...>) {
        return T{this->read<reflect::member_type<T, I>>()...};
      }
      (std::make_index_sequence<reflect::member_count<T>>());
    }
  }
  // Throws decode_error if bytes are left.
  void check_end() const;

 private:
  template <class T, std::size_t I = 0>
  T alternative(std::size_t index) {
    if constexpr (I < std::variant_size_v<T>) {
      if (index == I) return T(std::in_place_index<I>, read<std::variant_alternative_t<I, T>>());
      return alternative<T, I + 1>(index);
    } else {
      parts::refuse("a variant has no such alternative");
    }
  }
  template <class N>
  N number() {
    std::array<std::byte, sizeof(N)> raw{};
    take(raw);
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
    return std::bit_cast<N>(raw);
  }
  void take(std::span<std::byte> into);
  std::size_t count();  // at most the number of bytes that are left

  std::span<const std::byte> rest_;
};

// The bytes of a value, as they are stored. They come behind the bytes of `behind`.
template <storable T>
std::vector<std::byte> encode(const T& value, std::vector<std::byte> behind = {}) {
  writer output(std::move(behind));
  output.write(value);
  return output.take();
}

// Throws decode_error, even if only because bytes are left.
template <storable T>
T decode(std::span<const std::byte> stored) {
  reader from(stored);
  T value = from.read<T>();
  from.check_end();
  return value;
}

namespace parts {

// How many names a shape contains.
enum class naming : std::uint8_t {
  none,         // as the first versions stored it; it is still stored, and compared between nodes
  short_names,  // as later versions stored it besides: enumerators to 127, names of alternatives
  exact,        // as the next versions did: all enumerators that are known, and the names by which
                // the parts of a type differ, whose texts were compared with their enumerators
  // As `exact`, and structs, enumerations and types with a codec begin with their name: the last
  // part of it, the name with its namespaces but without versions, as the compiler spells it.
  with_short,
  with_qualified,
  with_spelled,
  with_container,  // the same, and before it the whole type, even if it has no name
  // All enumerators that are known, and the whole name of each alternative and element. Only
  // reads_shape, which compares, decides which of these names count: a text that had just the
  // names it takes would change when enumerators or alternatives are added.
  full,
  full_part,  // the same for a part of an alternative or of an element: it begins with its name
};

// A type has one address.
template <class T>
inline char shape_tag = 0;

// The facts about an alternative or an element that variant_shape and list_shape need.
struct shape_part {
  const void* tag;
  const char* type;
  bool is_named;
  bool is_spelled;
  std::string (*text)(naming);
};
std::string enum_shape(naming how, std::string under, bool is_signed,
                       std::span<const reflect::named_value> enumerators);
std::string codec_shape(naming how, std::string_view shape);
// Alternatives, and elements, of different types have different texts with `exact`. Throws
// usage_error for two alternatives that the compiler spells alike.
std::string variant_shape(naming how, std::span<const shape_part> alternatives);
std::string list_shape(naming how, std::span<const shape_part> elements);
std::string name_of_type(naming how, std::string_view type);

template <class T>
inline constexpr bool is_compound =
    std::is_same_v<T, std::monostate> || is_optional<T> || is_variant<T> || is_duration<T> ||
    is_time<T> || calendar_field<T> || tuple_like<T> || container<T>;
template <class T>
inline constexpr bool has_name = (std::is_class_v<T> || std::is_enum_v<T>)&&!is_compound<T>;
// Whose name is before its shape, if there are names: a type with a codec may be compound.
template <class T>
inline constexpr bool is_spelled = has_name<T> || (has_codec<T> && std::is_class_v<T>);

template <class T>
std::string shape_text(naming how);
template <class... T>
std::string list_text(naming how, std::type_identity<std::tuple<T...>>) {
  static constexpr std::array<shape_part, sizeof...(T)> elements{shape_part{
      &shape_tag<T>, base::type_name<T>(), has_name<T>, is_spelled<T>, &shape_text<T>}...};
  return list_shape(how, elements);
}
template <class... T>
std::string variant_text(naming how, std::type_identity<std::variant<T...>>) {
  static constexpr std::array<shape_part, sizeof...(T)> alternatives{shape_part{
      &shape_tag<T>, base::type_name<T>(), has_name<T>, is_spelled<T>, &shape_text<T>}...};
  return variant_shape(how, alternatives);
}
template <class T>
std::string list_text(naming how) {
  return [how]<std::size_t... I>(std::index_sequence<I...>) {
    return list_text(how, std::type_identity<std::tuple<std::tuple_element_t<I, T>...>>());
  }
  (std::make_index_sequence<std::tuple_size_v<T>>());
}

template <class T>
std::string shape_text(naming how) {
  if constexpr (is_spelled<T>) {
    if (how == naming::full_part)
      return name_of_type(how, base::type_name<T>()) + shape_text<T>(naming::full);
    if (how >= naming::with_short && how < naming::full)
      return name_of_type(how, base::type_name<T>()) + shape_text<T>(naming::exact);
  } else {
    if (how == naming::with_container)
      return name_of_type(how, base::type_name<T>()) + shape_text<T>(naming::exact);
  }
  if constexpr (has_codec<T>) {
    return codec_shape(how, codec<T>::shape);
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_enum_v<T>) {
    using under = std::underlying_type_t<T>;
    return enum_shape(how, shape_text<under>(how), std::is_signed_v<under>,
                      reflect::all_enumerators<T>);
  } else if constexpr (std::is_arithmetic_v<T>) {
    const char* const kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
    return kind + std::to_string(sizeof(T));
  } else if constexpr (is_duration<T>) {
    return "duration " + shape_text<typename T::rep>(how) + " " + std::to_string(T::period::num) +
           "/" + std::to_string(T::period::den);
  } else if constexpr (is_time<T>) {
    const bool is_local = std::is_same_v<typename T::clock, std::chrono::local_t>;
    return (is_local ? "local time " : "time ") + shape_text<typename T::duration>(how);
  } else if constexpr (calendar_field<T>) {
    return std::string(calendar_form<T>::name) + shape_text<typename calendar_form<T>::stored>(how);
  } else if constexpr (is_optional<T>) {
    return shape_text<typename T::value_type>(how) + "?";
  } else if constexpr (is_variant<T>) {
    return variant_text(how, std::type_identity<T>());
  } else if constexpr (tuple_like<T>) {
    return "<" + list_text<T>(how) + ">";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "text";
  } else if constexpr (container<T>) {
    return "[" + shape_text<typename element<typename T::value_type>::type>(how) + "]";
  } else if constexpr (std::is_empty_v<T>) {
    return "{}";
  } else {
    return [how]<std::size_t... I>(std::index_sequence<I...>) {
      std::string text = "{";
      ((text += (I == 0 ? "" : ","), text += reflect::member_names<T>[I], text += ':',
        text += shape_text<reflect::member_type<T, I>>(how)),
       ...);
      return text + "}";
    }
    (std::make_index_sequence<reflect::member_count<T>>());
  }
}

// The permitted additions to a shape.
enum class growth : std::uint8_t {
  enumerators,
  alternatives,  // at the end of variants, and enumerators
};
// Whether values that were stored with the shape `before` mean the same as values of `now`, which
// is a full shape. `before` may have fewer names. `added` names the permitted additions; nothing
// else may have changed; docs/protocols/identity.md has the rules.
bool reads_shape(std::string_view now, std::string_view before, growth added = growth::enumerators);

}  // namespace parts

// The names and types of all that T holds, in one line, with the enumerators of enumerations and
// the names of alternatives. Values of two types with the same shape have the same bytes. A store
// keeps more than this, and compares it (docs/protocols/identity.md has the rules). Throws
// usage_error for a variant with two different types that the compiler spells alike.
template <storable T>
std::string shape_of() {
  return parts::shape_text<T>(parts::naming::exact);
}

// A number for a shape: FNV-1a of 64 bits.
std::uint64_t fingerprint_of(std::string_view shape) noexcept;

}  // namespace troupe::durable
