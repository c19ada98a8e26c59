#include "runtime/observing/stacks/stacks.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actor/scan/actor_scan.hpp"
#include "actor/system/actor_system.hpp"
#include "base/clock.hpp"
#include "base/threads/thread_clock.hpp"
#include "runtime/core/runtime_core.hpp"
#include "task/running/running.hpp"
#include "task/running/stack_copy.hpp"

namespace troupe::observing {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
// Threads that do not take the signal: for how long one is waited for, and all of them together.
constexpr std::int64_t patience_ns = 200 * ns_per_ms, patience_of_all_ns = 1'000 * ns_per_ms;
constexpr std::size_t threads_max = 256;

struct mapping {
  std::uintptr_t begin, end;
  bool is_main_stack;
};

// The writable memory of this process. Without /proc it is empty, and no stack is copied.
std::vector<mapping> read_mappings() {
  std::vector<mapping> all;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             &std::fclose);
  char line[512];
  bool begins = true;
  while (maps != nullptr && std::fgets(line, sizeof line, maps.get()) != nullptr) {
    const std::string_view content(line);
    const bool is_begin = std::exchange(begins, content.ends_with('\n'));
    unsigned long begin = 0, end = 0;
    char access[5] = {};
    if (!is_begin || std::sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3) continue;
    if (std::string_view(access).starts_with("rw"))
      all.push_back({begin, end, content.find("[stack]") != std::string_view::npos});
  }
  return all;
}

// Above the frames of a thread lies its thread-local storage, in the same memory. The main thread's
// lies elsewhere, and the system names its stack. The range is known before the thread is
// interrupted: the signal's handler only copies.
tasks::stack_range frames_of(const tasks::running_work& thread, const std::vector<mapping>& all) {
  const bool is_main = thread.system_thread == ::getpid();
  const auto storage = reinterpret_cast<std::uintptr_t>(thread.storage);
  for (const mapping& part : all) {
    if (is_main && part.is_main_stack) return {part.begin, part.end};
    if (!is_main && part.begin <= storage && storage < part.end) return {part.begin, storage};
  }
  return {};
}

const char* reason_of(tasks::copy_result result) noexcept {
  switch (result) {
    case tasks::copy_result::copied:
      return "";
    case tasks::copy_result::ended:
      return "the thread has ended";
    case tasks::copy_result::unsupported:
      return "the program uses all real-time signals, or runs on an unknown processor";
    case tasks::copy_result::unanswered:
      break;
  }
  return "the thread has not taken the signal in time: it gets no processor, is in a system call "
         "that cannot be interrupted, or blocks all signals";
}

void write_hex(json_text& text, const tasks::stack_copy& copy) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(copy.stack.data());
  text.key("stack").hex(std::span(bytes, copy.bytes));
}

// `Work` has the handler's members of running_work: a copy of a stack, or running_work itself.
template <class Work>
void write_handler(json_text& text, runtime_core& core, const Work& work) {
  if (work.method != nullptr) {
    const bool is_named = work.name != nullptr && work.actor == nullptr;
    text.member("handler",
                is_named ? work.name : work.method(nullptr, nullptr, sched::message_act::describe));
  }
  if (work.actor == nullptr) return;
  text.member("actor", core.system->slots.find_number(work.actor));
  if (const actor::cell_type* const type = actor::find_type(work.actor))
    text.member("class", type->name);
}

void write_copy(json_text& text, const tasks::stack_copy& copy) {
  text.member("held_ns", copy.held_ns).key("registers").open('[');
  for (const std::uint64_t value : copy.registers) text.value(value);
  text.close(']').member("stack_pointer", copy.stack_pointer);
  write_hex(text, copy);
}

}  // namespace

const char* stacks_refused() noexcept {
  return ::prctl(PR_GET_DUMPABLE) == 1
             ? nullptr
             : "the program does not let its memory be seen (PR_SET_DUMPABLE)";
}

void write_stacks(json_text& text, runtime_core& core, stacks_wanted wanted) {
  std::vector<tasks::running_work> threads;
  tasks::for_each_thread(*core.system, [&](const tasks::running_work& thread) {
    if (wanted.worker.value_or(thread.worker) == thread.worker && threads.size() < threads_max)
      threads.push_back(thread);
  });
  const std::vector<mapping> mappings = read_mappings();
  const std::int64_t end_ns = base::now_ns() + patience_of_all_ns;
  text.open('{').member("now_ns", base::now_ns()).key("threads").open('[');
  for (const tasks::running_work& thread : threads) {
    const bool is_blocked = base::is_blocked(thread.system_thread);
    if (wanted.running_only && is_blocked) continue;
    // A thread without work waits for some: nothing of the program's is on its stack.
    if (!wanted.running_only && is_blocked && thread.method == nullptr) continue;
    const std::int64_t left_ns = std::min(patience_ns, end_ns - base::now_ns());
    const tasks::copy_result result =
        left_ns <= 0
            ? tasks::copy_result::unanswered
            : tasks::copy_stack(thread.system_thread, frames_of(thread, mappings), left_ns);
    if (result == tasks::copy_result::ended) continue;
    text.open('{').member("worker", thread.worker).member("thread", thread.system_thread);
    // -1 if the thread has ended meanwhile
    const std::int64_t cpu_ns = base::cpu_ns_of(thread.system_thread);
    text.member("is_blocked", is_blocked).member("cpu_ns", std::max<std::int64_t>(cpu_ns, 0));
    if (result == tasks::copy_result::copied) {
      write_handler(text, core, tasks::last_stack_copy());
      write_copy(text, tasks::last_stack_copy());
    } else {
      write_handler(text, core, thread);
      text.member("missing", reason_of(result));
    }
    text.close('}');
  }
  text.close(']').close('}');
}

}  // namespace troupe::observing
