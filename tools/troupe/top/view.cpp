#include "top/view.hpp"

#include <curses.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe_tool {
namespace {

struct sort_order {
  char key;
  order by;
};
// From left to right, as the columns are.
constexpr sort_order sorts[] = {{'n', order::name}, {'a', order::alive}, {'m', order::messages},
                                {'b', order::busy}, {'w', order::wait},  {'f', order::failures}};

}  // namespace

void view::press(int key, std::size_t page, const table& shown) {
  sort(key);
  move(key, page);
  if (key == 'q') ends_ = true;
  if (key == 'l') toggle(level::content::longest);
  if (key == 'v') toggle(level::content::warnings);
  if (key == 'i') toggle(level::content::work);
  if (key == 'c') toggle(level::content::numbers);
  if (key == '?') toggle(level::content::keys);
  if (key == '\n' || key == KEY_ENTER) drill(shown);
  if (key == KEY_BACKSPACE || key == 127 || key == '\033') go_up();
}

std::string view::foot() const {
  switch (levels_.back().shown) {
    case level::content::handlers:
      return "Left, Right: sort  Enter: actors  l: mailboxes  i: I/O  v: warnings  ?: keys  q: end";
    case level::content::work:
    case level::content::numbers:
    case level::content::keys:
      return "Backspace: back  ?: keys  q: end";
    case level::content::warnings:
      return "Enter: the whole warning  Backspace: back  ?: keys  q: end";
    case level::content::warning:
      return "Enter: the actor or its class  Backspace: back  ?: keys  q: end";
    case level::content::actor:
      return "Enter: the actor that is asked  Backspace: back  ?: keys  q: end";
    default:
      return "Left, Right: sort  Enter: the actor  Backspace: back  ?: keys  q: end";
  }
}

void view::sort(int key) {
  if (key == KEY_LEFT || key == KEY_RIGHT) sort_by_next(key == KEY_RIGHT);
  const bool is_of_actors = here().lists_actors();
  for (const auto& [letter, by] : sorts) {
    if (key != letter) continue;
    if (!is_of_actors) by_ = by;
    if (is_of_actors && (by == order::messages || by == order::name)) actors_by_ = by;
  }
}

void view::sort_by_next(bool to_the_right) {
  if (here().lists_actors()) actors_by_ = actors_by_ == order::name ? order::messages : order::name;
  if (here().shown != level::content::handlers) return;
  constexpr std::size_t orders = std::size(sorts);
  const auto now =
      static_cast<std::size_t>(std::ranges::find(sorts, by_, &sort_order::by) - std::begin(sorts));
  by_ = sorts[(now + (to_the_right ? 1 : orders - 1)) % orders].by;
}

void view::move(int key, std::size_t page) {
  level& at = here();
  if (key == KEY_DOWN || key == 'j') ++at.chosen;
  if (key == KEY_UP || key == 'k') at.chosen -= std::min<std::size_t>(at.chosen, 1);
  if (key == KEY_NPAGE) at.chosen += page;
  if (key == KEY_PPAGE) at.chosen -= std::min(at.chosen, page);
  if (key == KEY_HOME) at.chosen = 0;
}

void view::toggle(level::content shown) { here().shown == shown ? go_up() : go_to({shown}); }

void view::go_up() {
  if (levels_.size() > 1) levels_.pop_back();
}

void view::go_to(level next) {
  constexpr std::size_t depth_max = 100;  // actors that ask each other lead round and round
  if (levels_.size() == depth_max) levels_.erase(levels_.begin() + 1);
  levels_.push_back(std::move(next));
}

void view::drill(const table& shown) {
  if (here().chosen >= shown.lines.size()) return;
  const table_line& line = shown.lines[here().chosen];
  if (here().shown == level::content::warnings) {
    go_to({.shown = level::content::warning, .runtime = line.runtime, .warning = line.warning});
  } else if (line.actor != 0) {
    go_to({level::content::actor, line.runtime, line.of_class, line.actor});
  } else if (!line.of_class.empty() && (here().shown == level::content::handlers ||
                                        here().shown == level::content::warning)) {
    go_to({level::content::actors, line.runtime, line.of_class});
  }
}

}  // namespace troupe_tool
