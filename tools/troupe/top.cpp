#include "top.hpp"

#include <curses.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

// The terminal belongs to curses while this exists.
class screen {
 public:
  screen() {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
      throw failure("top: it reads keys from a terminal and draws on it: use --once elsewhere");
    if (::newterm(nullptr, stdout, stdin) == nullptr)
      throw failure("top: this terminal cannot be drawn on: set TERM, or use --once");
    ::cbreak();
    ::noecho();
    ::curs_set(0);
    ::keypad(::stdscr, TRUE);
    ::set_escdelay(50);
  }
  screen(const screen&) = delete;
  ~screen() { ::endwin(); }
};

constexpr std::size_t actors_max = 100;

// What one table is about: all handlers, the longest mailboxes of all classes, the warnings, I/O
// with lazies and timers, the actors of one class, or one actor.
struct level {
  enum class of { handlers, longest, warnings, work, actors, actor } what = of::handlers;
  std::size_t runtime = 0;
  std::string of_class{};
  std::uint64_t actor = 0;
  std::size_t chosen = 0, first = 0;  // lines of the table
};

// Which key sorts by what.
constexpr std::pair<char, order> sorts[] = {{'m', order::messages}, {'b', order::busy},
                                            {'w', order::wait},     {'a', order::alive},
                                            {'f', order::failures}, {'n', order::name}};

class view {
 public:
  explicit view(order by) : by_(by) {}

  bool ends() const noexcept { return ends_; }
  level& here() noexcept { return levels_.back(); }
  order by() const noexcept { return by_; }

  void press(int key, std::size_t page, const table& shown) {
    for (const auto& [sort, by] : sorts) {
      if (key == sort) by_ = by;
    }
    level& at = here();
    if (key == 'q') ends_ = true;
    if (key == 'l') at.what == level::of::longest ? go_up() : go_to({level::of::longest});
    if (key == 'v') at.what == level::of::warnings ? go_up() : go_to({level::of::warnings});
    if (key == 'i') at.what == level::of::work ? go_up() : go_to({level::of::work});
    if (key == KEY_DOWN || key == 'j') ++at.chosen;
    if (key == KEY_UP || key == 'k') at.chosen -= std::min<std::size_t>(at.chosen, 1);
    if (key == KEY_NPAGE) at.chosen += page;
    if (key == KEY_PPAGE) at.chosen -= std::min(at.chosen, page);
    if (key == KEY_HOME) at.chosen = 0;
    if (key == '\n' || key == KEY_ENTER || key == KEY_RIGHT) drill(shown);
    if (key == KEY_BACKSPACE || key == 127 || key == KEY_LEFT || key == '\033') go_up();
  }

  const char* keys() {
    switch (here().what) {
      case level::of::handlers:
        return "sort: m b w a f n  Enter: actors  l: mailboxes  i: I/O  v: warnings  q: quit";
      case level::of::work:
        return "Backspace: back  q: quit";
      case level::of::warnings:
        return "Enter: the actor  Backspace: back  q: quit";
      case level::of::actor:
        return "Enter: the actor that is asked  Backspace: back  q: quit";
      default:
        return "m: by mail  n: by id  Enter: the actor  Backspace: back  q: quit";
    }
  }

 private:
  void go_up() {
    if (levels_.size() > 1) levels_.pop_back();
  }
  void go_to(level next) {
    constexpr std::size_t depth_max = 100;  // actors that ask each other lead round and round
    if (levels_.size() == depth_max) levels_.erase(levels_.begin() + 1);
    levels_.push_back(std::move(next));
  }
  void drill(const table& shown) {
    if (here().chosen >= shown.lines.size()) return;
    const table_line& line = shown.lines[here().chosen];
    if (line.actor != 0) {
      go_to({level::of::actor, line.runtime, line.of_class, line.actor});
    } else if (here().what == level::of::handlers) {
      go_to({level::of::actors, line.runtime, line.of_class});
    }
  }

  order by_;
  bool ends_ = false;
  std::vector<level> levels_{level{}};
};

// Those with most mail, and then others.
json actors_of(program& of, const level& at) {
  const std::string rest = at.of_class.empty() ? "" : " " + at.of_class;
  json page =
      of.ask("longest " + std::to_string(at.runtime) + " " + std::to_string(actors_max) + rest);
  if (at.what == level::of::longest) return page;
  std::set<std::uint64_t> known;
  for (const json& one : page.at("actors")) known.insert(one.at("id").get<std::uint64_t>());
  const json others =
      of.ask("actors " + std::to_string(at.runtime) + " 0 " + std::to_string(actors_max) + rest);
  for (const json& one : others.at("actors")) {
    if (page.at("actors").size() < actors_max &&
        known.insert(one.at("id").get<std::uint64_t>()).second)
      page.at("actors").push_back(one);
  }
  return page;
}

struct shown_text {
  std::vector<std::string> head;
  table body;
};

shown_text look_at(program& of, const moment& seen, view& how, std::size_t width) {
  const level& at = how.here();
  shown_text text{head_lines(seen, width), {}};
  if (at.what == level::of::handlers) {
    text.body = handler_table(seen, how.by(), width);
  } else if (at.what == level::of::warnings) {
    text.body = warning_table(seen.now, width);
  } else if (at.what == level::of::work) {
    text.body = work_table(seen, width);
  } else if (at.what == level::of::actor) {
    const json story =
        of.ask("actor " + std::to_string(at.runtime) + " " + std::to_string(at.actor));
    text.head.push_back(story_line(story, at.actor, width));
    text.body = call_table(story, at.runtime, width);
  } else {
    text.body = actor_table(actors_of(of, at), at.runtime, width);
    if (how.by() == order::name) std::ranges::sort(text.body.lines, {}, &table_line::actor);
  }
  return text;
}

void draw(const shown_text& text, view& how) {
  const auto height = static_cast<std::size_t>(std::max(LINES, 4)),
             width = static_cast<std::size_t>(std::max(COLS, 20));
  const std::size_t used = text.head.size() + 2;
  const std::size_t room = height > used + 1 ? height - used : 1, rows = text.body.lines.size();
  level& at = how.here();
  at.chosen = std::min(at.chosen, rows == 0 ? 0 : rows - 1);
  at.first = std::clamp(at.first, at.chosen + 1 > room ? at.chosen + 1 - room : 0, at.chosen);
  ::erase();
  int y = 0;
  const auto draw_line = [&](const std::string& text_of_line, attr_t with) {
    std::string line = shown(text_of_line);
    line.resize(width, ' ');
    attron(with);
    mvaddnstr(y++, 0, line.c_str(), static_cast<int>(width));
    attroff(with);
  };
  for (const std::string& line : text.head) draw_line(line, A_NORMAL);
  draw_line(text.body.head, A_REVERSE);
  for (std::size_t i = at.first; i < std::min(at.first + room, rows); ++i)
    draw_line(text.body.lines[i].text, i == at.chosen ? A_BOLD | A_UNDERLINE : A_NORMAL);
  y = static_cast<int>(height) - 1;
  std::string foot = how.keys();
  foot.resize(width, ' ');
  attron(A_DIM);
  mvaddnstr(y, 0, foot.c_str(), static_cast<int>(width) - 1);
  attroff(A_DIM);
  ::refresh();
}

// The next key; ERR when the interval has passed without one. Nothing at the end of the input: the
// terminal has been closed.
std::optional<int> next_key(std::chrono::milliseconds interval) {
  if (const int key = ::getch(); key != ERR) return key;
  ::pollfd input{STDIN_FILENO, POLLIN, 0};
  const int found = ::poll(&input, 1, static_cast<int>(interval.count()));
  if (found == 0) return ERR;
  const int key = ::getch();  // after a signal: that the window has another size
  if (key == ERR && found > 0) return std::nullopt;
  return key;
}

}  // namespace

void show_top(program& of, order by, std::chrono::milliseconds interval) {
  moment seen{json(), of.ask("summary")};
  const screen drawn;
  view how(by);
  ::timeout(0);
  while (!how.ends()) {
    const auto width = static_cast<std::size_t>(std::max(COLS, 20));
    const shown_text text = look_at(of, seen, how, width);
    draw(text, how);
    const std::optional<int> key = next_key(interval);
    if (!key) return;
    if (*key != ERR) {
      how.press(*key, static_cast<std::size_t>(std::max(LINES - 8, 1)), text.body);
      continue;
    }
    seen.before = std::move(seen.now);
    seen.now = of.ask("summary");
  }
}

}  // namespace troupe_tool
