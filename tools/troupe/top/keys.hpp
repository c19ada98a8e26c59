// keys: what the keys of `troupe top` do. `?` shows this list, and the manual page has it.
#pragma once

namespace troupe_tool {

struct key_help {
  const char *keys, *effect;
};

inline constexpr key_help keys_of_top[] = {
    {"Left, Right", "sort by another column; * marks it"},
    {"m b w a f n",
     "sort by messages, time (busy and blocked), wait, actors alive, failures or name"},
    {"Up, Down, k, j", "choose a line; Page Up, Page Down and Home, too"},
    {"Enter", "open the line: a handler's class, an actor, the actor that it asks, a warning"},
    {"Backspace, Escape", "go back"},
    {"l", "the longest mailboxes"},
    {"v", "the warnings"},
    {"i", "I/O, lazies and timers"},
    {"c", "numbers of components, as HTTP and databases, and of the program itself"},
    {"?", "these keys"},
    {"q", "end"}};

}  // namespace troupe_tool
