#include "top/screen.hpp"

#include <curses.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "trust/failure.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

constexpr short notice_pair = 1, trouble_pair = 2;

bool wants_colours() {
  const char* const refused = std::getenv("NO_COLOR");
  return refused == nullptr || *refused == '\0';
}

attr_t attributes_of(screen::look how) {
  switch (how) {
    case screen::look::head:
      return A_REVERSE;
    case screen::look::chosen:
      return A_BOLD | A_UNDERLINE;
    case screen::look::foot:
      return A_DIM;
    case screen::look::plain:
      break;
  }
  return A_NORMAL;
}

}  // namespace

screen::screen() {
  if (::newterm(nullptr, stdout, stdin) == nullptr)
    throw failure("top: this terminal cannot be drawn on: set TERM, or use --once");
  ::cbreak();
  ::noecho();
  ::curs_set(0);
  ::keypad(::stdscr, TRUE);
  ::set_escdelay(50);
  ::timeout(0);
  if (!wants_colours() || !::has_colors() || ::start_color() == ERR) return;
  const short background = ::use_default_colors() == OK ? short{-1} : short{COLOR_BLACK};
  ::init_pair(notice_pair, COLOR_YELLOW, background);
  ::init_pair(trouble_pair, COLOR_RED, background);
  has_colours_ = true;
}

screen::~screen() { ::endwin(); }

std::size_t screen::width() const noexcept { return static_cast<std::size_t>(std::max(COLS, 20)); }
std::size_t screen::height() const noexcept { return static_cast<std::size_t>(std::max(LINES, 4)); }

void screen::clear() { ::erase(); }
void screen::show() { ::refresh(); }

void screen::draw(std::size_t y, const std::string& text, look how, severity how_bad) {
  attr_t with = attributes_of(how);
  if (has_colours_ && how_bad == severity::notice) with |= COLOR_PAIR(notice_pair);
  if (has_colours_ && how_bad == severity::trouble) with |= COLOR_PAIR(trouble_pair) | A_BOLD;
  std::string line = shown(text);
  line.resize(width(), ' ');
  // The last character of the last line would scroll the terminal.
  const std::size_t drawn = y + 1 == height() ? width() - 1 : width();
  attron(with);
  mvaddnstr(static_cast<int>(y), 0, line.c_str(), static_cast<int>(drawn));
  attroff(with);
}

std::optional<int> screen::next_key(std::chrono::milliseconds interval) {
  if (const int key = ::getch(); key != ERR) return key;
  ::pollfd input{STDIN_FILENO, POLLIN, 0};
  const int found = ::poll(&input, 1, static_cast<int>(interval.count()));
  if (found == 0) return ERR;
  const int key = ::getch();  // after a signal: that the window has another size
  if (key == ERR && found > 0) return std::nullopt;
  return key;
}

}  // namespace troupe_tool
