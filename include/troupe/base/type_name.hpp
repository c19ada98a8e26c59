// type_name: the name of a type or a method as the compiler spells it, without RTTI.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace troupe::base {
namespace detail {

template <class T>
constexpr std::string_view type_signature() {
  return __PRETTY_FUNCTION__;
}

template <auto Value>
constexpr std::string_view value_signature() {
  return __PRETTY_FUNCTION__;
}

// Both compilers write "... [with T = NAME; ...]" or "... [T = NAME]".
constexpr std::string_view cut(std::string_view signature, std::string_view key) {
  const std::size_t begin = signature.find(key) + key.size();
  const std::size_t semicolon = signature.find(';', begin);
  const std::size_t end = semicolon == std::string_view::npos ? signature.rfind(']') : semicolon;
  return signature.substr(begin, end - begin);
}

template <std::size_t Size>
constexpr std::array<char, Size + 1> terminated(std::string_view text) {
  std::array<char, Size + 1> characters{};
  for (std::size_t i = 0; i < Size; ++i) characters[i] = text[i];
  return characters;
}

template <class T>
struct type_text {
  static constexpr std::string_view view = cut(type_signature<T>(), "T = ");
  static constexpr auto text = terminated<view.size()>(view);
};

template <auto Value>
struct value_text {
  static constexpr std::string_view view = cut(value_signature<Value>(), "Value = ");
  static constexpr auto text = terminated<view.size()>(view);
};

}  // namespace detail

// "Account", "bank::Account": zero-terminated; valid for the whole program.
template <class T>
constexpr const char* type_name() noexcept {
  return detail::type_text<T>::text.data();
}

// "&Account::deposit" for a member function pointer.
template <auto Value>
constexpr const char* value_name() noexcept {
  return detail::value_text<Value>::text.data();
}

}  // namespace troupe::base
