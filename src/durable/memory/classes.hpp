// classes: the durable classes of a program, and how they differ from the stored ones.
//
// Thread: any, when compare() has returned.
//
// Invariants
//   K1  A name and a tag belong to one class, and a method's name to one method of its class.
//   K2  A class whose shapes the storage has otherwise is not opened: compare() throws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "durable/memory/actor_in_memory.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/storage.hpp"

namespace troupe::durable::parts {

class classes {
 public:
  // Throws option_error (K1).
  explicit classes(std::vector<kind_table> kinds);
  classes(const classes&) = delete;
  classes& operator=(const classes&) = delete;

  // Returns the shapes that the storage of that name does not have. Throws schema_error (K2).
  std::vector<class_shape> compare(const std::vector<class_shape>& stored,
                                   const std::string& storage);

  const kind_table* find(const void* tag) const noexcept;
  const kind_table* find(std::string_view name) const noexcept;
  // Null if the class has no such method, or one with other parameters or another result.
  static const method_entry* find_method(const kind_table& kind, std::string_view name,
                                         std::uint64_t signature) noexcept;
  // The actor's object as it is stored; a fresh one if it is not. Calls code of the program.
  // Throws schema_error or decode_error.
  object object_of(const activation& actor, const std::optional<stored_state>& found) const;

 private:
  void apply_events(const activation& actor, const stored_state& found, object& object) const;

  const std::vector<kind_table> kinds_;
  bool is_compared_ = false;  // compare() has found that the storage has no other shapes
  // Classes whose events a newer program may have stored, with its schema number. Written by
  // compare().
  std::map<std::string, std::uint32_t> newer_events_;
};

}  // namespace troupe::durable::parts
