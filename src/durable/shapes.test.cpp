// Shapes: which changes of a type let its stored values be read.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "troupe/durable/codec.hpp"

namespace shapes {

namespace card {
struct paid {
  int cents;
};
struct sent {
  int cents;
};
namespace v1 {
struct paid {
  int cents;
};
}  // namespace v1
template <class T>
struct box {
  struct paid {
    int cents;
  };
  struct sent {
    int cents;
  };
};
}  // namespace card
namespace bank {
struct paid {
  int cents;
};
namespace v2 {
struct paid {
  int cents;
};
}  // namespace v2
}  // namespace bank
namespace shop {
struct paid {
  int cents;
};
}  // namespace shop
struct paid {
  int cents;
};
struct paidV1 {
  int cents;
};
struct paidV2 {
  int cents;
};
struct paid_v1 {
  int cents;
};
struct paid_v2 {
  int cents;
};
struct paid_v1_v2 {
  int cents;
};
struct longer {
  std::int64_t cents;
};
struct user;
struct order;
template <class T>
struct id {
  std::string text;
};
template <int Number>
struct numbered {
  int cents;
};
struct coded {
  int value = 0;
};
struct coded_too {
  int value = 0;
};
struct coded_alike {
  int value = 0;
};
template <int>
struct coded_list {
  int value = 0;
};
template <int>
struct coded_word {
  int value = 0;
};
template <class T>
struct account {
  std::string name;
  T member;
};

enum class near_by : std::uint8_t { red, green, blue };
enum class near_by_longer : std::uint8_t { red, green, blue, black };
enum class near_by_moved : std::uint8_t { green, red, blue };
enum class near_by_shorter : std::uint8_t { red, green };
enum class near_by_wide : std::uint16_t { red, green, blue };
enum class signs { minus = -1, zero, plus };
enum class signs_renumbered { minus = -2, zero = 0, plus };
enum class statuses : std::uint16_t { ok = 200, gone = 410, broken = 500 };
enum class statuses_moved : std::uint16_t { ok = 200, broken = 410, gone = 500 };
enum class statuses_fewer : std::uint16_t { ok = 200, gone = 410 };
enum class statuses_more : std::uint16_t { ok = 200, gone = 410, broken = 500, lost = 501 };
enum class bytes_high : std::uint8_t { low = 128, high = 255 };
enum class bytes_high_moved : std::uint8_t { high = 128, low = 255 };
enum class negative : std::int16_t { far = -500, further = -501 };
enum class negative_moved : std::int16_t { further = -500, far = -501 };
enum class limits : std::uint64_t { none = ~std::uint64_t{0}, almost = ~std::uint64_t{1} };
enum class limits_moved : std::uint64_t { almost = ~std::uint64_t{0}, none = ~std::uint64_t{1} };
enum class limits_signed : std::int64_t { least = INT64_MIN, most = INT64_MAX };
enum class limits_signed_moved : std::int64_t { most = INT64_MIN, least = INT64_MAX };
enum class bits : std::uint64_t { a = 1, b = 1U << 20, c = std::uint64_t{1} << 63 };
enum class bits_moved : std::uint64_t { a = 1, c = 1U << 20, b = std::uint64_t{1} << 63 };
enum class bits_more : std::uint64_t { a = 1, b = 1U << 20, d = 1U << 21, c = 1ULL << 63 };
enum class spaced : std::uint32_t { p = 65'536, q = 131'072, r = 196'608 };
enum class spaced_moved : std::uint32_t { p = 65'536, q = 131'072, s = 196'608, r = 262'144 };
// Eleven and thirteen flags, and names of sums of them.
#define FLAGS                                                                              \
  f0 = 1, f1 = 2, f2 = 4, f3 = 8, f4 = 16, f5 = 32, f6 = 64, f7 = 128, f8 = 256, f9 = 512, \
  f20 = 1 << 20
#define MORE_FLAGS FLAGS, f21 = 1 << 21, f22 = 1 << 22
enum class eleven { FLAGS, some = f1 | f4 | f6 | f9 | f20 };
enum class eleven_moved { FLAGS, some = f1 | f4 | f6 | f8 | f20 };
enum class eleven_more { FLAGS, some = f1 | f4 | f6 | f9 | f20, any = f1 | f3 | f5 | f7 | f20 };
enum class thirteen { MORE_FLAGS, two = f1 | f21 };
enum class thirteen_moved { MORE_FLAGS, two = f1 | f22 };
enum class thirteen_other { MORE_FLAGS, three = f0 | f9 | f21, all = 0x7003ff };
enum class thirteen_other_moved { MORE_FLAGS, three = f0 | f8 | f21, all = 0x7003ff };
enum class thirteen_but { MORE_FLAGS, most = 0x7003ff & ~(f2 | f21) };
enum class thirteen_but_moved { MORE_FLAGS, most = 0x7003ff & ~(f2 | f20) };
enum class thirteen_near { MORE_FLAGS, high = f6 | f7 | f8 | f9 | f20 };
enum class thirteen_near_moved { MORE_FLAGS, high = f7 | f8 | f9 | f20 | f21 };
#undef MORE_FLAGS
#undef FLAGS
enum class listed : std::uint32_t { first = 100'000, second, third };
enum class listed_moved : std::uint32_t { first = 100'000, third, second };
enum class listed_more : std::uint32_t { first = 100'000, second, third, fourth };
enum class unlisted : std::uint32_t { first = 100'000, second };
enum class part_listed : std::uint32_t { first = 100'000, second };
enum class user_id : std::uint64_t {};
enum class part_id : std::uint64_t {};
enum class order_id : std::int64_t {};
enum class item_id : std::uint64_t { none };
enum class room_id : std::uint32_t { none };
enum class errors : std::int32_t { lost = 30'001, broken };
enum class errors_below : std::int32_t { lost = -4'001, broken = -4'000 };
enum class errors_hex : std::uint32_t { lost = 0x7000, broken };
enum class errors_long : std::int64_t { lost = 7'000'000'000'000'000'000, broken };
enum plain { plain_first = 300, plain_second };
enum plain_moved { moved_second = 300, moved_first };
enum class letters : char { a = 'a', z = 'z' };
enum class letters_moved : char { z = 'a', a = 'z' };
enum class same_as_near : std::uint8_t { red, green, blue };

// As `card1` and `bank1`, whose enumerations had fewer enumerators when values were stored.
namespace card1 {
enum class step : std::uint8_t { begun };
struct paid {
  step at;
  std::int8_t tries;
};
namespace v2 {
enum class step : std::uint8_t { begun, done };
struct paid {
  step at;
  std::int8_t tries;
};
}  // namespace v2
}  // namespace card1
namespace bank1 {
enum class step : std::uint8_t { begun, done };
struct paid {
  step at;
  std::int8_t tries;
};
namespace v2 {
enum class step : std::uint8_t { begun, done, failed };
struct paid {
  step at;
  std::int8_t tries;
};
}  // namespace v2
}  // namespace bank1
enum class door : std::uint8_t { open, shut };
enum class window : std::uint8_t { open, shut };
namespace v2 {
enum class door : std::uint8_t { open, shut, locked };
enum class window : std::uint8_t { open, shut, tilted };
}  // namespace v2
namespace v3 {
enum class window : std::uint8_t { open, shut, locked };
}  // namespace v3
enum class gate : std::uint8_t { open, shut };
struct with_door {
  door state;
};
struct with_window {
  window state;
};
namespace v2 {
struct with_door {
  door state;
};
}  // namespace v2

template <class T>
struct holder {
  enum class state : std::uint16_t { open = 600, shut = 601 };
};
template <class T>
struct other_holder {
  enum class state : std::uint16_t { shut = 600, open = 601 };
};

// The last two of 200 alternatives.
template <std::size_t>
using number = int;
template <class Before, class Last, std::size_t... I>
auto many(std::index_sequence<I...>) -> std::variant<number<I>..., Before, Last>;
template <class Before, class Last>
using many_of = decltype(many<Before, Last>(std::make_index_sequence<198>()));

}  // namespace shapes

template <>
inline constexpr auto troupe::reflect::listed_enumerators<shapes::listed> =
    std::array{shapes::listed::first, shapes::listed::second, shapes::listed::third};
template <>
inline constexpr auto troupe::reflect::listed_enumerators<shapes::listed_moved> = std::array{
    shapes::listed_moved::first, shapes::listed_moved::second, shapes::listed_moved::third};
template <>
inline constexpr auto troupe::reflect::listed_enumerators<shapes::listed_more> =
    std::array{shapes::listed_more::first, shapes::listed_more::second, shapes::listed_more::third,
               shapes::listed_more::fourth};
template <>
inline constexpr auto troupe::reflect::listed_enumerators<shapes::part_listed> =
    std::array{shapes::part_listed::first};
template <>
inline constexpr bool troupe::reflect::is_number<shapes::item_id> = true;

namespace troupe::durable {
template <>
struct codec<shapes::coded> {
  static constexpr std::string_view shape = "enum u1{a=0}";
  static void write(writer& to, const shapes::coded& value) { to.write(value.value); }
  static shapes::coded read(reader& from) { return {from.read<int>()}; }
};
template <>
struct codec<shapes::coded_too> {
  static constexpr std::string_view shape = "enum u1{a=0,b=1}";
  static void write(writer& to, const shapes::coded_too& value) { to.write(value.value); }
  static shapes::coded_too read(reader& from) { return {from.read<int>()}; }
};

// Their shapes have what a shape may have, and what it may not.
template <>
struct codec<shapes::coded_alike> : codec<shapes::coded> {
  static void write(writer& to, const shapes::coded_alike& value) { to.write(value.value); }
  static shapes::coded_alike read(reader& from) { return {from.read<int>()}; }
};
template <int Number>
struct codec<shapes::coded_list<Number>> {
  static constexpr std::string_view shape = "<x,|\"y\")";
  static void write(writer& to, const shapes::coded_list<Number>& value) { to.write(value.value); }
  static shapes::coded_list<Number> read(reader& from) { return {from.read<int>()}; }
};
template <int Number>
struct codec<shapes::coded_word<Number>> {
  static constexpr std::string_view shape = "word 2/3";
  static void write(writer& to, const shapes::coded_word<Number>& value) { to.write(value.value); }
  static shapes::coded_word<Number> read(reader& from) { return {from.read<int>()}; }
};

namespace {

using namespace shapes;

enum class expected { opens, refused };

// A shape as each version of the library stores it.
struct texts {
  std::string plain, named, exact, full;
};
template <class T>
texts texts_of() {
  using parts::naming;
  return {parts::shape_text<T>(naming::none), parts::shape_text<T>(naming::short_names),
          parts::shape_text<T>(naming::exact), parts::shape_text<T>(naming::full)};
}
struct row {
  const char* change;
  expected result;
  texts before, after;
};

template <class Before, class After>
row change(const char* name, expected result) {
  return {name, result, texts_of<Before>(), texts_of<After>()};
}

template <class A, class B>
using either = std::variant<A, B>;

void add_variants(std::vector<row>& to) {
  const auto opens = expected::opens, refused = expected::refused;
  const auto swapped = [&to, refused]<class A, class B>(const char* name, std::type_identity<A>,
                                                        std::type_identity<B>) {
    to.push_back(change<either<A, B>, either<B, A>>(name, refused));
    to.push_back(change<either<A, B>, either<A, B>>(name, expected::opens));
    to.push_back(
        change<either<std::vector<A>, std::vector<B>>, either<std::vector<B>, std::vector<A>>>(
            name, refused));
    to.push_back(change<account<std::optional<either<A, B>>>, account<std::optional<either<B, A>>>>(
        name, refused));
    to.push_back(change<std::pair<A, B>, std::pair<B, A>>(name, refused));
    using optionals = either<std::optional<A>, std::optional<B>>;
    to.push_back(change<optionals, either<std::optional<B>, std::optional<A>>>(name, refused));
    to.push_back(change<optionals, optionals>(name, expected::opens));
  };
#define SWAPPED(...) swapped(#__VA_ARGS__, __VA_ARGS__)
  SWAPPED(std::type_identity<card::paid>(), std::type_identity<card::sent>());
  SWAPPED(std::type_identity<card::paid>(), std::type_identity<bank::paid>());
  SWAPPED(std::type_identity<card::paid>(), std::type_identity<paid>());
  SWAPPED(std::type_identity<card::paid>(), std::type_identity<card::v1::paid>());
  SWAPPED(std::type_identity<paidV1>(), std::type_identity<paidV2>());
  SWAPPED(std::type_identity<paid_v1>(), std::type_identity<paid_v2>());
  SWAPPED(std::type_identity<paid>(), std::type_identity<paid_v2>());
  SWAPPED(std::type_identity<id<user>>(), std::type_identity<id<order>>());
  SWAPPED(std::type_identity<id<paid_v1>>(), std::type_identity<id<paid_v2>>());
  SWAPPED(std::type_identity<id<long>>(), std::type_identity<id<unsigned long>>());
  SWAPPED(std::type_identity<numbered<1>>(), std::type_identity<numbered<2>>());
  SWAPPED(std::type_identity<card::box<int>::paid>(), std::type_identity<card::box<int>::sent>());
  SWAPPED(std::type_identity<card::box<int>::paid>(), std::type_identity<card::box<long>::paid>());
  SWAPPED(std::type_identity<near_by>(), std::type_identity<same_as_near>());
  SWAPPED(std::type_identity<coded>(), std::type_identity<coded_alike>());
  SWAPPED(std::type_identity<coded_list<1>>(), std::type_identity<coded_list<2>>());
  SWAPPED(std::type_identity<coded_word<1>>(), std::type_identity<coded_word<2>>());
  SWAPPED(std::type_identity<account<coded>>(), std::type_identity<account<coded_alike>>());
#undef SWAPPED
  to.push_back(change<std::map<int, std::variant<std::monostate, card::paid, bank::paid>>,
                      std::map<int, std::variant<std::monostate, bank::paid, card::paid>>>(
      "in a map", refused));
  to.push_back(change<either<long, long long>, either<long long, long>>("integers", refused));
  to.push_back(
      change<either<std::vector<int>, std::set<int>>, either<std::set<int>, std::vector<int>>>(
          "containers", refused));
  to.push_back(change<std::variant<paid_v1, paid_v2, paid_v1_v2>,
                      std::variant<paid_v1_v2, paid_v2, paid_v1>>("three versions", refused));
  to.push_back(change<either<either<card::paid, card::sent>, either<card::sent, card::paid>>,
                      either<either<card::sent, card::paid>, either<card::paid, card::sent>>>(
      "variants of variants", refused));
  to.push_back(change<many_of<card::paid, bank::paid>, many_of<bank::paid, card::paid>>(
      "the last of 200 alternatives", refused));
  to.push_back(change<many_of<card::paid, bank::paid>, many_of<card::paid, card::sent>>(
      "the last of 200 is another", refused));
  to.push_back(change<either<card::paid, int>, either<bank::paid, int>>("a namespace", opens));
  to.push_back(change<either<card::paid, int>, either<card::v1::paid, int>>("a version", opens));
  to.push_back(change<either<paid_v1, card::sent>, either<paid_v2, card::sent>>("_v1", opens));
  to.push_back(change<either<paid, card::sent>, either<paidV1, card::sent>>("V1", opens));
  to.push_back(change<either<card::paid, bank::paid>, either<card::v1::paid, bank::v2::paid>>(
      "versions of two with one name", opens));
  to.push_back(change<either<card::paid, bank::paid>, either<card::paid, shop::paid>>(
      "a namespace of two with one name", refused));
  to.push_back(change<either<paid_v1, longer>, either<longer, paid_v1>>("a layout", refused));
  to.push_back(
      change<either<int, card::paid>, std::variant<int, card::paid, int>>("one more", refused));
  to.push_back(change<account<card::paid>, account<bank::paid>>("a member's type", opens));
  to.push_back(change<std::pair<int, card::paid>, std::pair<int, card::sent>>("a name", opens));
  to.push_back(change<std::tuple<long, long long>, std::tuple<long long, long>>("numbers", opens));
  to.push_back(change<coded, coded_too>("a codec's shape", refused));
}

// Alternatives and elements that differ in enumerators only, some of which are added.
void add_grown(std::vector<row>& to) {
  const auto opens = expected::opens, refused = expected::refused;
  const auto within = [&to]<class A, class B, class C, class D>(
                          const char* name, expected result, std::type_identity<std::pair<A, B>>,
                          std::type_identity<std::pair<C, D>>) {
    to.push_back(change<either<A, B>, either<C, D>>(name, result));
    to.push_back(change<std::pair<A, B>, std::pair<C, D>>(name, result));
    to.push_back(change<std::map<A, B>, std::map<C, D>>(name, result));
    to.push_back(change<std::tuple<int, B, A>, std::tuple<int, D, C>>(name, result));
    to.push_back(change<either<std::vector<A>, std::list<B>>, either<std::vector<C>, std::list<D>>>(
        name, result));
    to.push_back(change<std::pair<std::vector<A>, std::vector<B>>,
                        std::pair<std::vector<C>, std::vector<D>>>(name, result));
    to.push_back(change<std::list<either<int, either<A, B>>>, std::list<either<int, either<C, D>>>>(
        name, result));
    to.push_back(change<account<either<std::pair<int, A>, std::pair<int, B>>>,
                        account<either<std::pair<int, C>, std::pair<int, D>>>>(name, result));
    to.push_back(change<either<std::pair<A, B>, int>, either<std::pair<C, D>, int>>(name, result));
  };
#define CHANGED(result, before, after) within(#before " to " #after, result, before(), after())
#define TWO(...) std::type_identity<std::pair<__VA_ARGS__>>
  CHANGED(refused, TWO(card1::paid, bank1::paid), TWO(bank1::paid, card1::v2::paid));
  CHANGED(refused, TWO(card1::paid, bank1::paid), TWO(bank1::v2::paid, card1::v2::paid));
  CHANGED(refused, TWO(bank1::paid, card1::paid), TWO(card1::v2::paid, bank1::v2::paid));
  CHANGED(opens, TWO(card1::paid, bank1::paid), TWO(card1::v2::paid, bank1::paid));
  CHANGED(opens, TWO(card1::paid, bank1::paid), TWO(card1::paid, bank1::v2::paid));
  CHANGED(opens, TWO(card1::paid, bank1::paid), TWO(card1::v2::paid, bank1::v2::paid));
  CHANGED(opens, TWO(door, window), TWO(v2::door, window));
  CHANGED(opens, TWO(door, window), TWO(door, v2::window));
  CHANGED(opens, TWO(door, window), TWO(v2::door, v2::window));
  CHANGED(opens, TWO(v2::door, window), TWO(v2::door, v3::window));
  CHANGED(refused, TWO(door, window), TWO(window, door));
  CHANGED(refused, TWO(door, window), TWO(v2::window, v2::door));
  CHANGED(refused, TWO(door, window), TWO(window, v2::door));
  CHANGED(refused, TWO(door, v2::window), TWO(v2::window, v2::door));
  CHANGED(refused, TWO(v2::door, window), TWO(v3::window, v2::door));
  CHANGED(refused, TWO(door, window), TWO(door, gate));
  CHANGED(opens, TWO(with_door, with_window), TWO(v2::with_door, with_window));
  CHANGED(refused, TWO(with_door, with_window), TWO(with_window, v2::with_door));
#undef TWO
#undef CHANGED
}

// Exchanged where each place reads the other's values only with what is around it.
void add_exchanged(std::vector<row>& to) {
  const auto opens = expected::opens, refused = expected::refused;
  to.push_back(change<std::pair<near_by, door>, std::pair<same_as_near, door>>("a name", opens));
  to.push_back(
      change<std::pair<door, std::optional<window>>, std::pair<window, std::optional<door>>>(
          "exchanged", refused));
  to.push_back(
      change<std::map<user_id, std::vector<part_id>>, std::map<part_id, std::vector<user_id>>>(
          "exchanged", refused));
  to.push_back(
      change<std::map<door, std::map<int, window>>, std::map<v2::window, std::map<int, v2::door>>>(
          "exchanged", refused));
  to.push_back(
      change<either<std::optional<card::paid>, std::vector<bank::paid>>,
             either<std::optional<bank::paid>, std::vector<card::paid>>>("exchanged", refused));
  to.push_back(
      change<std::tuple<door, std::optional<window>, std::vector<gate>>,
             std::tuple<window, std::optional<gate>, std::vector<door>>>("three", refused));
  to.push_back(change<std::pair<door, std::optional<door>>, std::pair<door, std::optional<window>>>(
      "a type of its own", opens));
  to.push_back(change<std::pair<door, std::optional<window>>, std::pair<door, std::optional<gate>>>(
      "a name", opens));
  to.push_back(change<std::tuple<std::vector<door>, std::optional<window>>,
                      std::tuple<std::vector<v2::door>, std::optional<window>>>("within", opens));
  to.push_back(
      change<std::map<door, std::map<window, int>>, std::map<v2::door, std::map<window, int>>>(
          "within", opens));
  to.push_back(change<account<std::pair<coded, door>>, account<std::pair<coded, v2::door>>>(
      "beside a codec", opens));
  to.push_back(
      change<std::variant<coded, door, coded_too>, std::variant<coded, v2::door, coded_too>>(
          "beside codecs", opens));
  to.push_back(change<std::variant<coded, door, coded>, std::variant<coded, v2::door, coded_too>>(
      "another codec", refused));
}

void add_enumerations(std::vector<row>& to) {
  const auto opens = expected::opens, refused = expected::refused;
  const auto within = [&to]<class A, class B>(const char* name, expected result,
                                              std::type_identity<A>, std::type_identity<B>) {
    to.push_back(change<A, B>(name, result));
    to.push_back(change<A, A>(name, expected::opens));
    to.push_back(change<std::map<A, int>, std::map<B, int>>(name, result));
    to.push_back(
        change<std::variant<int, std::tuple<A, int>>, std::variant<int, std::tuple<B, int>>>(
            name, result));
  };
#define CHANGED(result, before, after) \
  within(#before, result, std::type_identity<before>(), std::type_identity<after>())
  CHANGED(opens, near_by, near_by_longer);
  CHANGED(refused, near_by, near_by_moved);
  CHANGED(refused, near_by, near_by_shorter);
  CHANGED(refused, near_by, near_by_wide);
  CHANGED(refused, signs, signs_renumbered);
  CHANGED(refused, statuses, statuses_moved);
  CHANGED(refused, statuses, statuses_fewer);
  CHANGED(opens, statuses, statuses_more);
  CHANGED(refused, bytes_high, bytes_high_moved);
  CHANGED(refused, negative, negative_moved);
  CHANGED(refused, limits, limits_moved);
  CHANGED(refused, limits_signed, limits_signed_moved);
  CHANGED(refused, bits, bits_moved);
  CHANGED(opens, bits, bits_more);
  CHANGED(refused, spaced, spaced_moved);
  CHANGED(refused, eleven, eleven_moved);
  CHANGED(opens, eleven, eleven_more);
  CHANGED(refused, thirteen, thirteen_moved);
  CHANGED(refused, thirteen_other, thirteen_other_moved);
  CHANGED(refused, thirteen_but, thirteen_but_moved);
  CHANGED(refused, thirteen_near, thirteen_near_moved);
  CHANGED(refused, listed, listed_moved);
  CHANGED(opens, listed, listed_more);
  CHANGED(refused, plain, plain_moved);
  CHANGED(refused, letters, letters_moved);
  CHANGED(opens, user_id, user_id);
#undef CHANGED
  to.push_back(change<holder<int>::state, other_holder<int>::state>("within a template", refused));
}

TEST(durable_shapes, tell_what_a_change_does_to_stored_values) {
  std::vector<row> rows;
  add_variants(rows);
  add_enumerations(rows);
  add_grown(rows);
  add_exchanged(rows);
  EXPECT_GT(rows.size(), 290u);
  std::size_t only_exact = 0, only_full = 0;
  for (const row& each : rows) {
    const std::string what =
        std::string(each.change) + ": " + each.before.full + " -> " + each.after.full;
    const auto reads = [&each](const std::string& before) {
      return each.before.plain == each.after.plain && parts::reads_shape(each.after.full, before);
    };
    const bool is_read = reads(each.before.full);
    EXPECT_EQ(is_read, each.result == expected::opens) << what;
    // A store of an earlier version opens, and refuses what its shapes can tell.
    const bool reads_exact = reads(each.before.exact), reads_named = reads(each.before.named);
    EXPECT_TRUE(reads_exact || !is_read) << what << ", from " << each.before.exact;
    EXPECT_TRUE(reads_named || !reads_exact) << what << ", from " << each.before.named;
    only_full += reads_exact && !is_read ? 1 : 0;
    only_exact += reads_named && !reads_exact ? 1 : 0;
  }
  EXPECT_GT(only_exact, 50u);
  EXPECT_GT(only_full, 20u);
}

template <class... T>
using event = std::variant<T...>;

// Events that were stored under one schema number and are read under a higher one.
TEST(durable_shapes, of_events_may_get_alternatives) {
  const auto opens = expected::opens, refused = expected::refused;
  const std::vector<row> rows{
      change<event<card::paid>, event<card::paid>>("the same", opens),
      change<event<card::paid>, event<card::paid, card::sent>>("one more", opens),
      change<event<card::paid>, event<card::paid, bank::paid>>("one of the same name", opens),
      change<event<card::paid>, event<card::paid, bank::paid, paid_v1, paid_v2>>("three", opens),
      change<event<card::paid>, event<card::paid, card::v1::paid>>("another version", opens),
      change<event<card::paid>, event<card::v1::paid, bank::paid>>("and a version", opens),
      change<event<int>, event<int, long>>("a number", opens),
      change<event<std::vector<card::paid>>, event<std::vector<card::paid>, std::list<bank::paid>>>(
          "a container", opens),
      change<event<door>, event<v2::door, window>>("and enumerators", opens),
      change<event<account<event<int>>>, event<account<event<int, std::string>>>>("within", opens),
      change<std::vector<event<int>>, std::vector<event<int, std::string>>>("in a list", opens),
      change<event<card::paid>, event<card::sent, card::paid>>("one before", refused),
      change<event<card::paid>, event<bank::paid, card::paid>>("one of that name", refused),
      change<event<card::paid, card::sent>, event<card::paid>>("one fewer", refused),
      change<event<card::paid, card::sent>, event<card::sent, card::paid>>("swapped", refused),
      change<event<card::paid, card::sent>, event<card::sent, card::paid, int>>("both", refused),
      change<event<card::paid>, event<longer, card::paid>>("a layout", refused),
      change<event<card::paid>, event<bank::paid, int, card::paid>>("moved to the end", refused),
      change<event<near_by>, event<near_by_moved, int>>("enumerators moved", refused),
      change<near_by, near_by_shorter>("an enumerator fewer", refused),
      change<card::paid, event<card::paid>>("no variant", refused),
      change<card::paid, longer>("a struct", refused),
      change<event<card1::paid, bank1::paid>, event<bank1::paid, card1::v2::paid, int>>("swapped",
                                                                                        refused),
  };
  for (const row& each : rows) {
    for (const std::string& before : {each.before.full, each.before.exact, each.before.named}) {
      const bool is_read = parts::reads_shape(each.after.full, before, parts::growth::alternatives);
      // The names of an earlier version may be too few, and are not too many.
      const bool is_full = before == each.before.full;
      EXPECT_TRUE(is_full || is_read || each.result == refused) << each.change << ": " << before;
      EXPECT_TRUE(!is_full || is_read == (each.result == opens))
          << each.change << ": " << before << " -> " << each.after.full;
    }
    const bool is_same = each.before.plain == each.after.plain;
    EXPECT_TRUE(is_same || !parts::reads_shape(each.after.full, each.before.full)) << each.change;
  }
}

TEST(durable_shapes, that_are_damaged_are_refused) {
  using whole = account<std::variant<std::map<door, coded_list<1>>, card::paid, std::vector<int>>>;
  const texts now = texts_of<whole>();
  for (const std::string& stored : {now.plain, now.named, now.exact, now.full}) {
    EXPECT_TRUE(parts::reads_shape(now.full, stored)) << stored;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      EXPECT_FALSE(parts::reads_shape(now.full, stored.substr(0, i))) << stored.substr(0, i);
      for (const char letter : std::string_view("\"(){}[]<>|,?:= ")) {
        std::string damaged = stored;
        damaged[i] = letter;
        static_cast<void>(parts::reads_shape(now.full, damaged));
        static_cast<void>(parts::reads_shape(damaged, now.full));
      }
    }
  }
}

TEST(durable_shapes, of_an_earlier_version_stay_as_they_were) {
  using parts::naming;
  using two = std::variant<card::paid, bank::paid, card::box<int>::sent, id<user>>;
  EXPECT_EQ(parts::shape_text<two>(naming::none), "({cents:i4}|{cents:i4}|{cents:i4}|{text:text})");
  EXPECT_EQ(parts::shape_text<two>(naming::short_names),
            "(paid{cents:i4}|paid{cents:i4}|box{cents:i4}|id{text:text})");
  EXPECT_EQ(parts::shape_text<statuses>(naming::short_names), "enum u2{}");
  EXPECT_EQ(parts::shape_text<bits>(naming::short_names), "enum u8{a=1,b=1048576}");
  EXPECT_EQ(parts::shape_text<bytes_high>(naming::short_names), "enum u1{low=128}");
}

TEST(durable_shapes, have_as_many_names_as_it_takes) {
  EXPECT_EQ((shape_of<either<card::paid, id<int>>>()), "(paid{cents:i4}|id{text:text})");
  EXPECT_EQ((shape_of<std::variant<card::paid, card::v1::paid, bank::v2::paid>>()),
            "(\"shapes::card::paid\"{cents:i4}|\"shapes::card::v1::paid\"{cents:i4}|"
            "\"::shapes::bank::paid\"{cents:i4})");
  EXPECT_EQ((shape_of<either<id<long>, id<unsigned long>>>()),
            "(\"::shapes::id<long>\"{text:text}|\"::shapes::id<unsigned long>\"{text:text})");
  EXPECT_EQ((shape_of<either<std::vector<card::paid>, std::list<card::sent>>>()),
            "([paid{cents:i4}]|[sent{cents:i4}])");
  EXPECT_EQ((shape_of<std::pair<card::paid, card::sent>>()), "<paid{cents:i4},sent{cents:i4}>");
  EXPECT_EQ((shape_of<either<long, long long>>()), "(\"long\"i8|\"long long\"i8)");
  EXPECT_EQ(shape_of<limits>(), "enum u8{almost=18446744073709551614,none=18446744073709551615}");
}

// Whether values are stored, and read again as what they were.
template <class T>
::testing::AssertionResult is_stored(T value) {
  try {
    if (decode<T>(encode(value)) != value) return ::testing::AssertionFailure() << "another value";
  } catch (const usage_error& refusal) {
    return ::testing::AssertionFailure() << refusal.what();
  }
  return ::testing::AssertionSuccess();
}

TEST(durable_shapes, refuse_values_that_they_do_not_know) {
  EXPECT_TRUE(is_stored(near_by::blue));
  EXPECT_TRUE(is_stored(static_cast<near_by>(200)));
  EXPECT_TRUE(is_stored(statuses::broken));
  EXPECT_TRUE(is_stored(negative::further));
  EXPECT_TRUE(is_stored(limits::almost));
  EXPECT_TRUE(is_stored(limits_signed::least));
  EXPECT_TRUE(is_stored(static_cast<bits>((1U << 20) | 1 | (std::uint64_t{1} << 63))));
  EXPECT_FALSE(is_stored(static_cast<bits>((1U << 20) | 4)));
  EXPECT_TRUE(is_stored(spaced::r));
  EXPECT_TRUE(is_stored(listed::third));
  EXPECT_FALSE(is_stored(static_cast<listed>(100'003)));
  EXPECT_FALSE(is_stored(unlisted::first));
  EXPECT_FALSE(is_stored(unlisted::second));
  EXPECT_TRUE(is_stored(static_cast<unlisted>(2'047)));
  EXPECT_FALSE(is_stored(static_cast<unlisted>(2'049)));
  EXPECT_TRUE(is_stored(static_cast<unlisted>(4'096)));  // a power of two has been looked at
  EXPECT_TRUE(is_stored(part_listed::first));
  EXPECT_FALSE(is_stored(part_listed::second));
  EXPECT_TRUE(is_stored(static_cast<user_id>(123'456'789)));
  EXPECT_TRUE(is_stored(static_cast<user_id>(~std::uint64_t{5})));
  EXPECT_TRUE(is_stored(static_cast<order_id>(-123'456'789)));
  EXPECT_TRUE(is_stored(static_cast<item_id>(123'456'789)));
  EXPECT_FALSE(is_stored(static_cast<room_id>(123'456'789)));
  // Not found, but their first value is looked at before they are taken for numbers.
  EXPECT_FALSE(is_stored(errors::broken));
  EXPECT_FALSE(is_stored(static_cast<errors>(123'456'789)));
  EXPECT_FALSE(is_stored(errors_below::lost));
  EXPECT_FALSE(is_stored(errors_hex::broken));
  EXPECT_FALSE(is_stored(errors_long::broken));
  EXPECT_TRUE(is_stored(std::byte{200}));
}

TEST(durable_shapes, a_refusal_says_what_to_do) {
  const auto check = [](const std::string& text) {
    EXPECT_NE(text.find("100001"), text.npos) << text;
    EXPECT_NE(text.find("listed_enumerators<shapes::unlisted>"), text.npos) << text;
    EXPECT_NE(text.find("is_number<shapes::unlisted>"), text.npos) << text;
  };
  try {
    static_cast<void>(encode(std::map<unlisted, int>{{unlisted::second, 1}}));
    ADD_FAILURE() << "it was stored";
  } catch (const usage_error& refusal) {
    check(refusal.what());
  }
  try {
    static_cast<void>(decode<unlisted>(encode(std::uint32_t{100'001})));
    ADD_FAILURE() << "it was read";
  } catch (const decode_error& refusal) {
    check(refusal.what());
  }
}

// Which names are known: 13 flags that are combined at will, and 13 numbers that are no flags.
enum class rights : std::uint32_t {
  r0 = 1,
  r1 = 2,
  r2 = 4,
  r3 = 8,
  r4 = 16,
  r5 = 32,
  r6 = 64,
  r7 = 128,
  r8 = 256,
  r9 = 512,
  r20 = 1U << 20,
  r21 = 1U << 21,
  r22 = 1U << 22,
};
TEST(durable_shapes, know_sums_of_many_flags) {
  EXPECT_TRUE(is_stored(static_cast<rights>(0x700001)));
  EXPECT_TRUE(is_stored(static_cast<rights>(0x7003ff)));
  EXPECT_FALSE(is_stored(static_cast<rights>(0x700400)));
}

}  // namespace
}  // namespace troupe::durable
