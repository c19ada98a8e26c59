#include "actor/running.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "actor/turn.hpp"

namespace troupe::actor {
namespace {

// Never destroyed: threads may end after the program's statics.
struct thread_list {
  std::mutex mutex;
  std::vector<turn_place*> places;
  static thread_list& get() {
    static thread_list& instance = *new thread_list;
    return instance;
  }
};

struct listing {
  turn_place* place = nullptr;
  ~listing() {
    if (place == nullptr) return;
    thread_list& list = thread_list::get();
    std::lock_guard lock(list.mutex);
    std::erase(list.places, place);
  }
};
thread_local listing listing_of_thread;

}  // namespace

void list_running(turn_place& of_thread) noexcept {
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  list.places.push_back(&of_thread);
  listing_of_thread.place = &of_thread;
  of_thread.listed = true;
}

std::string running_handlers(const system& home) {
  std::string names;
  thread_list& list = thread_list::get();
  std::lock_guard lock(list.mutex);
  for (const turn_place* place : list.places) {
    // order: relaxed  a snapshot
    const message::handler method = place->method.load(std::memory_order_relaxed);
    if (place->home.load(std::memory_order_relaxed) != &home || place->actor.load(std::memory_order_relaxed) == nullptr ||
        method == nullptr) {
      continue;
    }
    if (!names.empty()) names += "; ";
    names += method(nullptr, nullptr, message_act::describe);
  }
  return names.empty() ? "none" : names;
}

}  // namespace troupe::actor
