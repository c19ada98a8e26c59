// screen: the terminal while `troupe top` draws on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "tables.hpp"

namespace troupe_tool {

// The terminal belongs to curses while this exists. Colours are used if the terminal has them and
// NO_COLOR is not set (https://no-color.org).
class screen {
 public:
  // Throws failure if the terminal cannot be drawn on.
  screen();
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;
  ~screen();

  std::size_t width() const noexcept;
  std::size_t height() const noexcept;

  enum class look { plain, head, chosen, foot };
  void clear();
  void draw(std::size_t y, const std::string& text, look how, severity how_bad = severity::none);
  void show();

  // The next key; ERR when the interval has passed without one. Nothing at the end of the input:
  // the terminal has been closed.
  std::optional<int> next_key(std::chrono::milliseconds interval);

 private:
  bool has_colours_ = false;
};

}  // namespace troupe_tool
