// debugger_table: the positions in memory by which tools/gdb/troupe_gdb.py finds the actors of a
// stopped program or of a core file although the library has no debug information
// (docs/decisions/debugger.md).
//
// A debugger finds the table by the name of `troupe_debugger`, or by the section of that name,
// which every kind of `strip` keeps. It calls no function of the program.
#pragma once

#include <cstdint>

#include "actor/system/actor_system.hpp"
#include "troupe/sched/message.hpp"

namespace troupe {

// An offset, a size or a value, by its name in the script.
struct debugger_entry {
  char name[28];
  std::uint32_t value;
};
// The function of a kind of suspension, by which the script recognizes that kind.
struct debugger_function {
  char name[16];
  const char* (*act)(sched::message*, void* object, sched::message_act);
};

// The runtimes of the program. Threads: any.
void show_debugger(actor::actor_system& begun) noexcept;
void hide_from_debugger(actor::actor_system& ended) noexcept;

}  // namespace troupe
