// type_names: how a type is called in a shape.
#pragma once

#include <string>
#include <string_view>

namespace troupe::durable::parts {

// Takes the text up to that letter, which follows.
std::string_view take_until(std::string_view& from, char letter) noexcept;

// A text in which nothing is looked for.
std::string quoted(std::string_view text);

// Takes such a text, with which `from` begins, and returns the quoted part.
std::string take_quoted(std::string_view& from);

// A shape of which all enumerations have no enumerators.
std::string without_enumerators(std::string_view shape);

// The name in a shape with `short_names`, which is stored: it stays as it is, although it takes a
// type within a class template for the template.
std::string short_name_before(std::string_view type);

// "Circle" of "shop::Circle", "shop::v1::Circle", "shop::Circle<int>" and "Shop<int>::Circle".
std::string_view short_name(std::string_view type) noexcept;

// A name as both compilers spell it, where they spell alike: template arguments that are values,
// and local types, may differ.
std::string spelled_alike(std::string_view type, bool keeps_versions);

}  // namespace troupe::durable::parts
