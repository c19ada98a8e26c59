#include "top/top.hpp"

#include <curses.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "numbers.hpp"
#include "text/short_text.hpp"
#include "text/warnings.hpp"
#include "top/keys.hpp"
#include "top/screen.hpp"
#include "top/view.hpp"

namespace troupe_tool {
namespace {

constexpr std::size_t actors_max = 100;

// Those with most mail, and then others.
json actors_of(program& asked, const level& at) {
  const std::string rest = at.of_class.empty() ? "" : " " + at.of_class;
  json page =
      asked.ask("longest " + std::to_string(at.runtime) + " " + std::to_string(actors_max) + rest);
  if (at.shown == level::content::longest) return page;
  std::set<std::uint64_t> known;
  for (const json& actor : page.at("actors")) known.insert(actor.at("id").get<std::uint64_t>());
  const json others =
      asked.ask("actors " + std::to_string(at.runtime) + " 0 " + std::to_string(actors_max) + rest);
  for (const json& actor : others.at("actors")) {
    if (page.at("actors").size() < actors_max &&
        known.insert(actor.at("id").get<std::uint64_t>()).second)
      page.at("actors").push_back(actor);
  }
  return page;
}

table key_table(std::size_t width) {
  constexpr std::size_t keys_width = 20;
  table shown{fmt::format("{:<{}} {}", "key", keys_width, "what it does"), {}};
  for (const auto& [keys, effect] : keys_of_top) {
    std::string before = keys;
    for (const std::string& line : wrapped(effect, width - std::min(width, keys_width + 1))) {
      shown.lines.push_back({.text = fmt::format("{:<{}} {}", before, keys_width, line)});
      before.clear();
    }
  }
  return shown;
}

struct shown_text {
  std::vector<table_line> head;
  table body;
};

// `numbers` keeps what this asks for.
shown_text look_at(program& asked, const moment& seen, moment& numbers, view& how,
                   std::size_t width) {
  const level& at = how.here();
  shown_text text{head_lines(seen, width), {}};
  if (at.shown == level::content::handlers) {
    text.body = handler_table(seen, how.by(), width);
  } else if (at.shown == level::content::warnings) {
    text.body = warning_table(seen.now, width);
  } else if (at.shown == level::content::warning) {
    text.body = warning_text(seen.now, at.runtime, at.warning, width);
  } else if (at.shown == level::content::keys) {
    text.body = key_table(width);
  } else if (at.shown == level::content::work) {
    text.body = work_table(seen, width);
  } else if (at.shown == level::content::numbers) {
    json now = asked.ask("numbers components");
    if (now.at("now_ns") != numbers.now.value("now_ns", json()))
      numbers = {std::move(numbers.now), std::move(now)};
    text.body = numbers_table(numbers, width);
  } else if (at.shown == level::content::actor) {
    const json story =
        asked.ask("actor " + std::to_string(at.runtime) + " " + std::to_string(at.actor));
    text.head.push_back({.text = story_line(story, at.actor, width)});
    text.body = call_table(story, at.runtime, width);
  } else {
    text.body = actor_table(actors_of(asked, at), at.runtime, how.by(), width);
    if (how.by() == order::name) std::ranges::sort(text.body.lines, {}, &table_line::actor);
  }
  return text;
}

void draw(screen& on, const shown_text& text, view& how) {
  const std::size_t height = on.height(), used = text.head.size() + 2;
  const std::size_t room = height > used + 1 ? height - used : 1, rows = text.body.lines.size();
  level& at = how.here();
  at.chosen = std::min(at.chosen, rows == 0 ? 0 : rows - 1);
  at.first = std::clamp(at.first, at.chosen + 1 > room ? at.chosen + 1 - room : 0, at.chosen);
  on.clear();
  std::size_t y = 0;
  for (const table_line& line : text.head)
    on.draw(y++, line.text, screen::look::plain, line.how_bad);
  on.draw(y++, text.body.head, screen::look::head);
  for (std::size_t i = at.first; i < std::min(at.first + room, rows); ++i) {
    const table_line& line = text.body.lines[i];
    on.draw(y++, line.text, i == at.chosen ? screen::look::chosen : screen::look::plain,
            line.how_bad);
  }
  on.draw(height - 1, how.foot(), screen::look::foot);
  on.show();
}

}  // namespace

bool has_terminal() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0; }

void show_top(program& asked, order by, std::chrono::milliseconds interval) {
  moment seen{json(), asked.ask("summary")}, numbers{json(), json::object()};
  screen drawn;
  view how(by);
  while (!how.ends()) {
    const shown_text text = look_at(asked, seen, numbers, how, drawn.width());
    draw(drawn, text, how);
    const std::optional<int> key = drawn.next_key(interval);
    if (!key) return;
    if (*key != ERR) {
      how.press(*key, std::max<std::size_t>(drawn.height(), 9) - 8, text.body);
      continue;
    }
    seen.before = std::move(seen.now);
    seen.now = asked.ask("summary");
  }
}

}  // namespace troupe_tool
