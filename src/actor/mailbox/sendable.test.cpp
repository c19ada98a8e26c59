// What may travel in a message, type by type.
#include "troupe/actor/sendable.hpp"

#include <gtest/gtest.h>

#include <any>
#include <bitset>
#include <chrono>
#include <coroutine>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <ranges>
#include <ratio>
#include <regex>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>

#include "troupe/actor/ref.hpp"
#include "troupe/base/type_name.hpp"
#include "troupe/base/unique_function.hpp"

namespace {
struct incomplete;
template <class T>
struct box;

// A handle that models an iterator, and a view that does not look like one.
struct handle {
  using difference_type = int;
  int value = 0;
  int& operator*() { return value; }
  handle& operator++() { return *this; }
  handle operator++(int) { return *this; }
};
struct token {
  const char* text;
};
// A type that has only a part of an iterator's operations.
struct smart {
  int& operator*() const { return *held; }
  std::shared_ptr<int> held;
};
struct view_of_ours : std::ranges::view_interface<view_of_ours> {
  int* begin() const { return nullptr; }
  int* end() const { return nullptr; }
};
// A class template with values among its parameters.
template <class T, std::size_t Size>
struct fixed_vector {
  T items[Size];
};
template <class T, int Rows, bool Packed>
struct matrix {
  T items[Rows];
};
template <class Key, class T, std::size_t Size>
struct fixed_map {
  Key keys[Size];
  T items[Size];
};
template <class T, std::size_t Size, class Allocator = std::allocator<T>>
struct small_vector {
  std::vector<T, Allocator> items;
};
template <auto Tag, class T>
struct tagged {
  T value;
};
template <class T, std::size_t Size>
struct table_of_literals {
  T items[Size];
};
}  // namespace
template <class T, std::size_t Size>
struct troupe::is_sendable<table_of_literals<T, Size>> : std::true_type {};
template <>
struct troupe::is_sendable<handle> : std::true_type {};
template <>
struct troupe::is_sendable<token> : std::false_type {};

namespace troupe {
namespace {

template <class... T>
void all_are(bool sendable) {
  (static_cast<void>([&] { EXPECT_EQ(is_sendable<T>::value, sendable) << base::type_name<T>(); }()),
   ...);
}

TEST(sendable, what_owns_its_parts_travels) {
  all_are<int, double, char, std::nullptr_t, std::byte, int[3], int (*)(int), int handle::*>(true);
  all_are<std::string, std::wstring, std::vector<std::string>, std::vector<bool>, std::deque<int>,
          std::list<int>, std::map<int, std::string>, std::unordered_map<int, int>, std::set<int>,
          std::array<int, 3>, std::bitset<8>>(true);
  all_are<std::unique_ptr<int>, std::unique_ptr<int[]>, std::unique_ptr<incomplete>,
          std::unique_ptr<void, void (*)(void*)>, std::shared_ptr<int>, std::shared_ptr<void>,
          std::weak_ptr<int>, std::optional<int>, std::variant<int, std::string>, std::any,
          std::tuple<>, std::tuple<int, std::string>, std::pair<int, int>>(true);
  all_are<std::function<void(int*)>, std::move_only_function<void()>, unique_function<void()>,
          decltype([] {}), smart, std::exception_ptr>(true);
  all_are<std::chrono::nanoseconds, std::chrono::steady_clock::time_point, std::chrono::year,
          std::filesystem::path, std::stop_token, std::future<int>, std::promise<std::string>,
          std::thread, std::regex>(true);
  all_are<std::ranges::owning_view<std::vector<int>>,
          std::ranges::take_view<std::ranges::owning_view<std::string>>>(true);
  all_are<ref<incomplete>, ref<box<int*>>, std::vector<ref<incomplete>>, unchecked<int*>,
          unchecked<int&>>(true);
}

TEST(sendable, what_refers_to_something_does_not) {
  all_are<int*, const char*, int&, const int&, int&&, void*, int* [3], std::reference_wrapper<int>,
          std::atomic_ref<int>, std::initializer_list<int>>(false);
  all_are<std::string_view, std::u8string_view, std::span<int>, std::span<const int, 3>>(false);
  all_are<std::vector<int*>, std::optional<std::string_view>, std::map<int, std::span<int>>,
          std::unique_ptr<int*>, std::unique_ptr<int*[]>, std::tuple<int, int&>,
          std::pair<int, const char*>, std::array<int*, 2>, std::shared_ptr<std::string_view>>(
      false);
  all_are<decltype(std::bind_front(std::declval<void (*)(int*)>(), std::declval<int*>()))>(false);
}

TEST(sendable, views_of_what_others_own_do_not) {
  using ints = std::vector<int>;
  all_are<std::ranges::ref_view<ints>, std::ranges::subrange<ints::iterator>,
          std::ranges::subrange<std::list<int>::iterator>,
          std::ranges::take_view<std::ranges::ref_view<ints>>,
          std::ranges::elements_view<std::views::all_t<std::map<int, int>&>, 0>,
          std::ranges::basic_istream_view<int, char, std::char_traits<char>>, view_of_ours>(false);
}

TEST(sendable, iterators_do_not) {
  all_are<std::vector<int>::iterator, std::vector<bool>::iterator, std::string::const_iterator,
          std::deque<int>::iterator, std::list<int>::iterator, std::forward_list<int>::iterator,
          std::map<int, int>::iterator, std::set<int>::const_iterator,
          std::unordered_map<int, int>::iterator, std::filesystem::path::iterator>(false);
  all_are<std::reverse_iterator<std::list<int>::iterator>,
          std::move_iterator<std::list<int>::iterator>,
          std::counted_iterator<std::list<int>::iterator>, std::back_insert_iterator<std::string>,
          std::insert_iterator<std::set<int>>, std::ostream_iterator<int>,
          std::istream_iterator<int>, std::smatch, std::sregex_iterator>(false);
}

TEST(sendable, iterators_that_make_their_values_do_not) {
  const auto twice = [](int n) { return 2 * n; };
  using doubled =
      std::ranges::transform_view<std::ranges::ref_view<std::vector<int>>, decltype(twice)>;
  all_are<std::istreambuf_iterator<char>, std::ranges::iterator_t<doubled>,
          std::vector<bool>::const_iterator>(false);
}

TEST(sendable, locks_and_handles_of_coroutines_do_not) {
  all_are<std::unique_lock<std::mutex>, std::shared_lock<std::shared_mutex>,
          std::optional<std::unique_lock<std::mutex>>>(false);
  all_are<std::coroutine_handle<>, std::coroutine_handle<std::suspend_always>>(false);
}

TEST(sendable, references_to_bits_do_not) {
  all_are<std::vector<bool>::reference, std::bitset<8>::reference, std::bitset<100>::reference>(
      false);
}

TEST(sendable, class_templates_with_values_are_looked_into) {
  all_are<fixed_vector<int, 2>, fixed_vector<const std::string, 2>, matrix<double, 3, true>,
          fixed_map<int, std::string, 4>, small_vector<int, 4>, tagged<7, std::string>,
          std::vector<fixed_vector<int, 2>>>(true);
  all_are<fixed_vector<const char*, 2>, matrix<int*, 3, true>, fixed_map<std::string_view, int, 4>,
          fixed_map<int, int*, 4>, small_vector<int*, 4>, tagged<7, std::string_view>,
          std::vector<fixed_vector<int*, 2>>, fixed_vector<std::array<int*, 2>, 2>>(false);
  all_are<std::array<int, 0>, std::array<std::array<std::string, 2>, 3>, std::bitset<100>,
          std::ratio<1, 3>, std::mt19937_64, std::chrono::duration<double, std::milli>,
          std::chrono::sys_days, std::integral_constant<int, 3>>(true);
  all_are<std::array<std::array<int*, 2>, 3>, std::span<int, 3>>(false);
}

TEST(sendable, a_specialization_of_the_users_decides) {
  all_are<table_of_literals<const char*, 2>>(true);
  all_are<handle, std::vector<handle>, const handle>(true);
  all_are<token, std::optional<token>, const token>(false);
}

}  // namespace
}  // namespace troupe
