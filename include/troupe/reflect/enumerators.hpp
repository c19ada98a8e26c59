// enumerators: all enumerators of an enumeration with their values, for code that keeps values
// longer than the program.
//
// The compiler is asked for the names of these values: -512 to 2047 (of a type of one byte all),
// each power of two, its negative and the number below it, the 16 smallest and the 16 largest
// values of the type, and the sums of at most twelve powers of two that have names; of more, the
// sums of two, three and neighbours, and all but one or two. An enumerator elsewhere is found if
// listed_enumerators names it. An enumeration of which none is found holds numbers. Thread: any.
// Cost: about 0.2 s of compile time for each enumeration of more than one byte, and up to 0.6 s
// more for sums; none at run time.
//
// Example:
//     enum class Code : std::uint32_t { first = 100'000, second };
//     template <>
//     inline constexpr auto troupe::reflect::listed_enumerators<Code> =
//         std::array{Code::first, Code::second};
//     int main() {
//       for (const auto& found : troupe::reflect::all_enumerators<Code>)
//         std::cout << found.name << '=' << found.bits << ' ';  // first=100000 second=100001
//     }
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe::reflect {

// Specialized for an enumeration with enumerators that are not found otherwise: a std::array of
// them, before the first use of a function that reads it.
template <class T>
inline constexpr std::array<T, 0> listed_enumerators{};

// Specialized as true for an enumeration whose values are numbers although it has enumerators, as
// `enum class user_id : std::uint64_t { none }`: other values mean the same whatever enumerators
// there are.
template <class T>
inline constexpr bool is_number = std::is_same_v<T, std::byte>;

// A value is its bits; a negative value has the bits of a std::int64_t.
struct named_value {
  std::string_view name;
  std::uint64_t bits = 0;
};

namespace parts {

template <class T>
using under = std::underlying_type_t<T>;

// An enumeration without a fixed type has the values that its enumerators need bits for, and a
// constant of another value is an error.
template <class T, std::int64_t Value>
concept has_value = requires {
  std::bool_constant<(static_cast<T>(Value), true)>();
};
template <class T>
concept has_fixed_type = requires {
  T{0};
};

struct value_limits {
  std::int64_t least = 0;
  std::uint64_t most = 0;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
// GCC warns of a value that an enumeration without a fixed type cannot have: asked for here.
#pragma GCC diagnostic ignored "-Wconversion"
#endif

template <class T>
consteval value_limits limits_of() {
  if constexpr (std::is_same_v<under<T>, bool>) {
    return {0, 1};
  } else if constexpr (has_fixed_type<T>) {
    return {static_cast<std::int64_t>(std::numeric_limits<under<T>>::min()),
            static_cast<std::uint64_t>(std::numeric_limits<under<T>>::max())};
  } else {
    constexpr auto type_most = static_cast<std::uint64_t>(std::numeric_limits<under<T>>::max());
    std::uint64_t most = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((has_value<T, static_cast<std::int64_t>((std::uint64_t{2} << I) - 1)>
            ? most = std::max(most, (std::uint64_t{2} << I) - 1)
            : most),
       ...);
    }
    (std::make_index_sequence<62>());
    most = std::min(most, type_most);
    const bool is_signed = std::is_signed_v<under<T>> && has_value<T, -1>;
    return {is_signed ? -static_cast<std::int64_t>(most) - 1 : 0, most};
  }
}

// A scoped enumeration within a class template has its enumerators once a name is looked up in it.
template <class T>
consteval bool complete() {
  return requires { T::troupe_has_no_such_enumerator; };
}

struct spelled_values {
  const char* text;
  std::size_t size;
};
// Compilers write "... Values = {Colour::red, (Colour)1, (Colour)-7}]", clang "<...>".
template <auto... Values>
consteval spelled_values spell_values() {
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};
}

consteval bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// At the comma or the bracket behind one of the values.
consteval const char* skip_value(const char* at) {
  for (int depth = 0; depth > 0 || (*at != ',' && *at != '}' && *at != '>'); ++at) {
    if (*at == '(' || *at == '<' || *at == '[' || *at == '{') ++depth;
    if (*at == ')' || *at == '>' || *at == ']' || *at == '}') --depth;
  }
  return at;
}

// Which of the values have names. By pointers, which compilers evaluate fastest.
template <std::size_t Size>
consteval std::array<bool, Size> find_named(spelled_values values) {
  std::array<bool, Size> named{};
  const char* at = values.text + std::string_view(values.text, values.size).find("Values = ") + 10;
  std::size_t cast = 0;  // the length of "(Colour)", which all values without a name begin with
  for (std::size_t i = 0; i < Size; ++i, at += 2) {
    if (cast != 0 && at[0] == '(' && at[cast - 1] == ')' &&
        (at[cast] == '-' || is_digit(at[cast]))) {
      at += cast + 1;
      while (*at >= '0' && *at <= '9') ++at;
      continue;
    }
    const char* const begin = at;
    at = skip_value(at);
    const char* digits = at;
    while (is_digit(digits[-1])) --digits;
    if (digits[-1] == '-') --digits;
    named[i] = digits == at || digits[-1] != ')';
    if (!named[i]) cast = static_cast<std::size_t>(digits - begin);
  }
  return named;
}

// Exactly one value, with a name.
template <auto... Values>
consteval std::string_view last_name() {
  constexpr spelled_values values = spell_values<Values...>();
  std::string_view text(values.text, values.size);
  text = text.substr(0, text.find_last_of("}>"));
  return text.substr(text.find_last_of(": {<") + 1);
}

// The values whose names the compiler is asked for at once.
inline constexpr std::size_t values_at_once = 256;
inline constexpr std::int64_t searched_least = -512;
inline constexpr std::int64_t searched_most = 2'047;
inline constexpr std::size_t values_near_limits = 16;
inline constexpr std::size_t combined_flags_max = 12;   // 4,096 sums
inline constexpr std::size_t flags_in_threes_max = 24;  // 2,024 sums

template <class T>
inline constexpr value_limits limits = limits_of<T>();
template <class T>
inline constexpr std::int64_t range_least = std::max(limits<T>.least, searched_least);
template <class T>
inline constexpr std::int64_t range_most =
    static_cast<std::int64_t>(std::min(limits<T>.most, static_cast<std::uint64_t>(searched_most)));

template <class T>
constexpr bool is_in_range(std::uint64_t bits) noexcept {
  const auto value = static_cast<std::int64_t>(bits);
  return value >= range_least<T> && value <= range_most<T>;
}
template <class T>
constexpr bool is_value(std::uint64_t bits) noexcept {
  if constexpr (std::is_signed_v<under<T>>) {
    const auto value = static_cast<std::int64_t>(bits);
    return value >= limits<T>.least && value <= static_cast<std::int64_t>(limits<T>.most);
  } else {
    return bits <= limits<T>.most;
  }
}

// A list of values that is made when the program is compiled.
template <std::size_t Most>
struct value_list {
  std::array<std::uint64_t, Most> values{};
  std::size_t size = 0;
  constexpr bool has(std::uint64_t bits) const {
    return std::find(values.begin(), values.begin() + size, bits) != values.begin() + size;
  }
  constexpr void add(std::uint64_t bits) { values[size++] = bits; }
};

// Each is a constant of its own: compilers limit the steps for one constant.
template <class T, std::size_t First, class Index>
inline constexpr bool named_of_chunk = false;
template <class T, std::size_t First, std::size_t... I>
inline constexpr auto named_of_chunk<T, First, std::index_sequence<I...>> =
    find_named<sizeof...(I)>(spell_values<static_cast<T>(static_cast<under<T>>(
                                 range_least<T> + static_cast<std::int64_t>(First + I)))...>());
template <class T, const auto& List, std::size_t First, class Index>
inline constexpr bool named_of_list = false;
template <class T, const auto& List, std::size_t First, std::size_t... I>
inline constexpr auto named_of_list<T, List, First, std::index_sequence<I...>> =
    find_named<sizeof...(I)>(
        spell_values<static_cast<T>(static_cast<under<T>>(List.values[First + I]))...>());
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// Calls use(first, named) for each chunk of so many values.
template <std::size_t Size, class Use>
constexpr void for_each_chunk(Use use) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (use.template
     operator()<I * values_at_once, std::min(values_at_once, Size - I * values_at_once)>(),
     ...);
  }
  (std::make_index_sequence<(Size + values_at_once - 1) / values_at_once>());
}

template <class T>
inline constexpr std::size_t range_size = static_cast<std::size_t>(range_most<T> - range_least<T> +
                                                                   1);
template <class T>
inline constexpr std::size_t named_in_range_count = [] {
  static_cast<void>(complete<T>());
  std::size_t count = 0;
  for_each_chunk<range_size<T>>([&count]<std::size_t First, std::size_t Count>() {
    for (const bool is_named : named_of_chunk<T, First, std::make_index_sequence<Count>>)
      count += is_named ? 1 : 0;
  });
  return count;
}();
template <class T>
inline constexpr auto named_in_range = [] {
  value_list<named_in_range_count<T>> found;
  for_each_chunk<range_size<T>>([&found]<std::size_t First, std::size_t Count>() {
    const auto& named = named_of_chunk<T, First, std::make_index_sequence<Count>>;
    for (std::size_t i = 0; i < Count; ++i) {
      if (named[i]) found.add(static_cast<std::uint64_t>(range_least<T>) + First + i);
    }
  });
  return found;
}();
// The values of the list that have a name.
template <class T, const auto& List>
consteval auto select_named() {
  value_list<List.size> found;
  for_each_chunk<List.size>([&found]<std::size_t First, std::size_t Count>() {
    const auto& named = named_of_list<T, List, First, std::make_index_sequence<Count>>;
    for (std::size_t i = 0; i < Count; ++i) {
      if (named[i]) found.add(List.values[First + i]);
    }
  });
  return found;
}

// Outside of the range: powers of two, values near them and near the limits, and listed values.
template <class T>
constexpr bool is_searched(std::uint64_t bits) noexcept {
  const bool is_power =
      std::has_single_bit(bits) || std::has_single_bit(bits + 1) || std::has_single_bit(0 - bits);
  return is_in_range<T>(bits) || is_power || limits<T>.most - bits < values_near_limits ||
         bits - static_cast<std::uint64_t>(limits<T>.least) < values_near_limits;
}
template <class T>
inline constexpr auto values_outside = [] {
  value_list<3 * 64 + 2 * values_near_limits + listed_enumerators<T>.size()> list;
  const auto consider = [&list](std::uint64_t bits) {
    if (is_value<T>(bits) && !is_in_range<T>(bits) && !list.has(bits)) list.add(bits);
  };
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t bits : {power, power - 1, 0 - power}) consider(bits);
  }
  for (std::uint64_t i = 0; i < values_near_limits; ++i) {
    consider(limits<T>.most - i);
    consider(static_cast<std::uint64_t>(limits<T>.least) + i);
  }
  for (const T listed : listed_enumerators<T>)
    consider(static_cast<std::uint64_t>(static_cast<under<T>>(listed)));
  return list;
}();
template <class T>
inline constexpr auto named_outside = select_named<T, values_outside<T>>();

// The bits that have names of their own, and whether some of them are outside of the range.
struct flag_facts {
  std::uint64_t bits = 0;
  int count = 0;
  bool has_outside = false;
  bool are_flags = false;  // most enumerators are such bits
};
template <class T>
inline constexpr flag_facts flags = [] {
  flag_facts facts;
  constexpr std::uint64_t width_mask = ~std::uint64_t{0} >> (64 - 8 * sizeof(under<T>));
  const auto add = [&facts](const auto& list, bool is_outside) {
    for (std::size_t i = 0; i < list.size; ++i) {
      const std::uint64_t bits = list.values[i] & width_mask;
      if (!std::has_single_bit(bits)) continue;
      facts.bits |= bits;
      ++facts.count;
      facts.has_outside |= is_outside;
    }
  };
  add(named_in_range<T>, false);
  add(named_outside<T>, true);
  const auto all = static_cast<int>(named_in_range<T>.size + named_outside<T>.size);
  facts.are_flags = facts.has_outside && all <= 2 * facts.count;
  return facts;
}();

// Calls use(sum) for each sum of flags whose name the compiler is asked for: of few flags all sums;
// of more those that programs name: of two, of three, of neighbours, and all but one or two.
template <class Use>
constexpr void for_each_sum(std::uint64_t bits, Use use) {
  std::array<std::uint64_t, 64> flag{};
  std::size_t count = 0;
  for (std::uint64_t left = bits; left != 0; left &= left - 1) flag[count++] = left & (0 - left);
  if (count <= combined_flags_max) {
    for (std::uint64_t choice = 0; choice < std::uint64_t{1} << count; ++choice) {
      std::uint64_t sum = 0;
      for (std::uint64_t left = choice; left != 0; left &= left - 1)
        sum |= flag[static_cast<std::size_t>(std::countr_zero(left))];
      use(sum);
    }
    return;
  }
  const std::size_t longest = count <= flags_in_threes_max ? 3 : 2;
  use(bits);
  for (std::size_t i = 0; i < count; ++i) {
    use(bits & ~flag[i]);
    std::uint64_t neighbours = flag[i];
    for (std::size_t j = i + 1; j < count; ++j) {
      const std::uint64_t two = flag[i] | flag[j];
      use(two);
      use(bits & ~two);
      neighbours |= flag[j];
      if (j - i + 1 > longest && j - i + 1 < count - 2) use(neighbours);
      for (std::size_t k = j + 1; longest == 3 && k < count; ++k) use(two | flag[k]);
    }
  }
}

// The sums of bits with names, as the sign extends them.
template <class T>
inline constexpr std::size_t sums_count = [] {
  std::size_t count = 0;
  if (flags<T>.has_outside) for_each_sum(flags<T>.bits, [&count](std::uint64_t) { ++count; });
  return count;
}();
template <class T>
inline constexpr auto sums_outside = [] {
  value_list<sums_count<T>> list;
  if (!flags<T>.has_outside) return list;
  for_each_sum(flags<T>.bits, [&list](std::uint64_t sum) {
    sum = static_cast<std::uint64_t>(static_cast<under<T>>(sum));
    if (is_searched<T>(sum) || !is_value<T>(sum)) return;
    for (const T listed : listed_enumerators<T>) {
      if (static_cast<std::uint64_t>(static_cast<under<T>>(listed)) == sum) return;
    }
    list.add(sum);
  });
  return list;
}();
template <class T>
inline constexpr auto named_sums = select_named<T, sums_outside<T>>();

// Values that the first of a row of enumerators has, and the ones behind them: 3'000, 100'001,
// 0x7000. They serve only to find out whether an enumeration without other names has any.
template <class T>
inline constexpr auto round_values = [] {
  value_list<1'500> list;
  const auto consider = [&list](std::uint64_t bits) {
    for (const std::uint64_t value : {bits, bits + 1}) {
      if (is_value<T>(value) && !is_searched<T>(value)) list.add(value);
    }
  };
  std::uint64_t power = 1'000;
  for (int digits = 3; digits < 20; ++digits, power *= 10) {
    for (std::uint64_t times = 1; times < (digits < 5 ? 100U : 10U); ++times) {
      if (times % 10 != 0 && times <= ~std::uint64_t{0} / power) consider(times * power);
      if (times < 10 && std::is_signed_v<under<T>> && digits < 19) consider(0 - times * power);
    }
  }
  for (int bit = 12; bit < 64; bit += 4) {
    for (std::uint64_t times = 1; times < 16; ++times) consider(times << bit);
  }
  return list;
}();
template <class T>
inline constexpr bool has_round = select_named<T, round_values<T>>().size > 0;

template <class T>
inline constexpr auto named_values = [] {
  constexpr std::size_t size = named_in_range<T>.size + named_outside<T>.size + named_sums<T>.size;
  value_list<size> all;
  const auto append = [&all](const auto& list) {
    for (std::size_t i = 0; i < list.size; ++i) all.add(list.values[i]);
  };
  append(named_in_range<T>);
  append(named_outside<T>);
  append(named_sums<T>);
  std::sort(all.values.begin(), all.values.end(), [](std::uint64_t left, std::uint64_t right) {
    if constexpr (std::is_signed_v<under<T>>)
      return static_cast<std::int64_t>(left) < static_cast<std::int64_t>(right);
    return left < right;
  });
  return all;
}();

}  // namespace parts

// Ordered by value; of two enumerators with the same value it has the first. Lifetime of the names:
// as the program.
template <class T>
inline constexpr auto all_enumerators = []<std::size_t... I>(std::index_sequence<I...>) {
  constexpr const auto& values = parts::named_values<T>.values;
  return std::array<named_value, sizeof...(I)>{named_value{
      parts::last_name<static_cast<T>(static_cast<parts::under<T>>(values[I]))>(), values[I]}...};
}
(std::make_index_sequence<parts::named_values<T>.size>());

namespace parts {
// Without enumerators values are numbers; some that are not found are not taken for that.
template <class T>
inline constexpr bool holds_numbers = [] {
  if constexpr (all_enumerators<T>.empty()) return !has_round<T>;
  return is_number<T>;
}();
}  // namespace parts

// Whether all_enumerators defines the meaning of the value: it contains the value, or the compiler
// was asked for its name and there is none. The bits of a sum of flags define its meaning.
template <class T>
constexpr bool is_known(T value) noexcept {
  using under = parts::under<T>;
  if constexpr (is_number<T> || sizeof(under) == 1) {
    return true;
  } else if constexpr (parts::holds_numbers<T>) {
    return true;
  } else {
    const auto bits = static_cast<std::uint64_t>(static_cast<under>(value));
    if (parts::is_searched<T>(bits)) return true;
    if (std::ranges::find(all_enumerators<T>, bits, &named_value::bits) != all_enumerators<T>.end())
      return true;
    constexpr parts::flag_facts flags = parts::flags<T>;
    const bool is_sum = (static_cast<std::make_unsigned_t<under>>(bits) & ~flags.bits) == 0;
    return is_sum && flags.has_outside &&
           (flags.count <= static_cast<int>(parts::combined_flags_max) || flags.are_flags);
  }
}

}  // namespace troupe::reflect
