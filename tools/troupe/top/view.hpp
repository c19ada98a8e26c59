// view: what `troupe top` shows now, and where each key leads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tables.hpp"

namespace troupe_tool {

// What one table is about: all handlers, the longest mailboxes of all classes, the warnings, one of
// them, I/O with lazies and timers, the numbers of components, the actors of one class, one actor,
// or the keys.
struct level {
  enum class content { handlers, longest, warnings, warning, work, numbers, actors, actor, keys };
  content shown = content::handlers;
  std::size_t runtime = 0;
  std::string of_class{};
  std::uint64_t actor = 0;
  std::string warning{};
  std::size_t chosen = 0, first = 0;  // lines of the table

  bool lists_actors() const noexcept {
    return shown == content::longest || shown == content::actors;
  }
};

class view {
 public:
  explicit view(order by) : by_(by) {}

  bool ends() const noexcept { return ends_; }
  level& here() noexcept { return levels_.back(); }
  // What the table here is sorted by. Actors are sorted by mail (`messages`) or by id (`name`).
  order by() const noexcept { return levels_.back().lists_actors() ? actors_by_ : by_; }

  void press(int key, std::size_t page, const table& shown);
  // The line at the foot: the keys that are of use here.
  std::string foot() const;

 private:
  void sort(int key);
  void sort_by_next(bool to_the_right);
  void move(int key, std::size_t page);
  void toggle(level::content shown);
  void go_up();
  void go_to(level next);
  void drill(const table& shown);

  order by_, actors_by_ = order::messages;
  bool ends_ = false;
  std::vector<level> levels_{level{}};
};

}  // namespace troupe_tool
