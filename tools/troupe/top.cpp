#include "top.hpp"

#include <curses.h>

#include <algorithm>
#include <optional>

namespace troupe_tool {
namespace {

// The terminal belongs to curses while this exists.
class screen {
 public:
  screen() {
    if (::newterm(nullptr, stdout, stdin) == nullptr)
      throw failure("top: this terminal cannot be drawn on: set TERM, or use --once");
    ::cbreak();
    ::noecho();
    ::curs_set(0);
    ::keypad(::stdscr, TRUE);
  }
  screen(const screen&) = delete;
  ~screen() { ::endwin(); }
};

struct view {
  order by;
  bool longest = false;
  std::size_t first = 0;  // line of the table
  bool ends = false;

  void press(int key, std::size_t page) {
    switch (key) {
      case 'q':
        ends = true;
        break;
      case 'm':
        by = order::messages;
        break;
      case 'b':
        by = order::busy;
        break;
      case 'w':
        by = order::wait;
        break;
      case 'a':
        by = order::alive;
        break;
      case 'f':
        by = order::failures;
        break;
      case 'n':
        by = order::name;
        break;
      case 'l':
        longest = !longest;
        first = 0;
        break;
      case KEY_DOWN:
        ++first;
        break;
      case KEY_UP:
        first -= first > 0 ? 1 : 0;
        break;
      case KEY_NPAGE:
        first += page;
        break;
      case KEY_PPAGE:
        first -= std::min(first, page);
        break;
      default:
        break;
    }
  }
};

constexpr const char* keys =
    "m b w a f n: sort by messages, busy, wait, alive, failures, name  l: longest mailboxes  q: "
    "quit";

std::vector<std::string> table(program& of, const moment& seen, const view& how,
                               std::size_t width) {
  if (!how.longest) return handler_lines(seen, how.by, width);
  constexpr const char* question = "longest 0 100";
  return actor_lines(of.ask(question), width);
}

void draw(const std::vector<std::string>& head, const std::vector<std::string>& lines, view& how) {
  const auto height = static_cast<std::size_t>(std::max(LINES, 4)),
             width = static_cast<std::size_t>(std::max(COLS, 20));
  const std::size_t room = height > head.size() + 3 ? height - head.size() - 3 : 1;
  const std::size_t rows = lines.size() - 1;
  how.first = std::min(how.first, rows > room ? rows - room : 0);
  ::erase();
  int y = 0;
  const auto put = [&](std::string line, attr_t with) {
    line.resize(width, ' ');
    attron(with);
    mvaddnstr(y++, 0, line.c_str(), static_cast<int>(width));
    attroff(with);
  };
  for (const std::string& line : head) put(line, A_NORMAL);
  put(lines.front(), A_REVERSE);
  for (std::size_t i = 0; i < std::min(room, rows - how.first); ++i)
    put(lines[1 + how.first + i], A_NORMAL);
  y = static_cast<int>(height) - 1;
  std::string foot = keys;
  foot.resize(width, ' ');
  attron(A_DIM);
  mvaddnstr(y, 0, foot.c_str(), static_cast<int>(width) - 1);
  attroff(A_DIM);
  ::refresh();
}

}  // namespace

void show_top(program& of, order by, std::chrono::milliseconds interval) {
  moment seen{json(), of.ask("summary")};
  const screen drawn;
  view how{by};
  ::timeout(static_cast<int>(interval.count()));
  while (!how.ends) {
    const auto width = static_cast<std::size_t>(std::max(COLS, 20));
    draw(head_lines(seen, width), table(of, seen, how, width), how);
    const int key = ::getch();
    if (key != ERR) {
      how.press(key, static_cast<std::size_t>(std::max(LINES - 8, 1)));
      continue;
    }
    seen.before = std::move(seen.now);
    seen.now = of.ask("summary");
  }
}

}  // namespace troupe_tool
