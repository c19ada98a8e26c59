// registry: actors by name.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/actor/ref.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/type_name.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

namespace kit {

// An actor that has a name; the ref is of the class whose name is `type`.
struct named_actor {
  std::shared_ptr<const void> ref;
  const char* type = nullptr;
};

class registry_state;
std::shared_ptr<registry_state> make_registry();
bool add_name(const std::shared_ptr<registry_state>& registry, std::string&& name,
              named_actor named, future<ended> ends);
bool remove_name(registry_state& registry, std::string_view name);
named_actor find_name(registry_state& registry, std::string_view name);
task<named_actor> wait_for_name(std::shared_ptr<registry_state> registry, std::string name,
                                tasks::limits within);
std::vector<std::string> names_of(const registry_state& registry);
[[noreturn]] void refuse_name_of_other(std::string_view name, const char* wanted,
                                       const char* found);
[[noreturn]] void refuse_to_name_none(std::string_view name);

template <class T>
ref<T> as_ref(const named_actor& named, std::string_view name) {
  if (named.ref == nullptr) return {};
  if (std::string_view(named.type) != base::type_name<T>())
    refuse_name_of_other(name, base::type_name<T>(), named.type);
  return *static_cast<const ref<T>*>(named.ref.get());
}

// The call of wait().
template <class T>
class name_call {
 public:
  using result = ref<T>;
  name_call(std::shared_ptr<registry_state> registry, std::string name) noexcept
      : registry_(std::move(registry)), name_(std::move(name)) {}
  task<result> start(tasks::limits within) && {
    return find(std::move(registry_), std::move(name_), std::move(within));
  }

 private:
  static task<result> find(std::shared_ptr<registry_state> registry, std::string name,
                           tasks::limits within) {
    task<named_actor> waits = wait_for_name(std::move(registry), name, std::move(within));
    const named_actor found = co_await std::move(waits);
    co_return as_ref<T>(found, name);
  }
  std::shared_ptr<registry_state> registry_;
  std::string name_;
};

}  // namespace kit

// Names for actors. A name denotes one actor, as a ref of the class by which it was added; an actor
// may have several names. When the actor ends, its names are free again. Copies refer to the same
// registry: keep it where those who need it find it, or hand it to actors as an argument.
//
// Thread: any, but wait() is awaited in a handler or a task. Cost: find() 45 ns among 100 names.
// Errors: usage_error for a ref of no actor, and for a name that denotes an actor of another class.
// Lifetime: a registry keeps its actors alive, as a ref does, until they are removed or stopped.
//
// Example:
//     struct Log {
//       void write(std::string line) { std::cout << line << '\n'; }
//     };
//     troupe::task<> use(troupe::registry names) {
//       const auto log = co_await names.wait<Log>("log").timeout(std::chrono::seconds(1));
//       log.tell<&Log::write>("found");
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::registry names;
//       rt.spawn(use(names));
//       if (!names.add("log", rt.spawn<Log>())) std::cout << "the name is taken\n";
//       rt.run();
//     }
class registry {
 public:
  registry() : state_(kit::make_registry()) {}

  // Returns false, and does nothing, if the name denotes an actor already.
  template <class T>
  [[nodiscard]] bool add(std::string name, const ref<T>& actor) const {
    if (!actor) kit::refuse_to_name_none(name);
    return kit::add_name(state_, std::move(name),
                         {std::make_shared<const ref<T>>(actor), base::type_name<T>()},
                         actor.watch());
  }
  // Frees the name. Returns whether it stood for an actor.
  bool remove(std::string_view name) const { return kit::remove_name(*state_, name); }

  // The actor of that name; a ref of no actor, which is false, if there is none.
  template <class T>
  ref<T> find(std::string_view name) const {
    return kit::as_ref<T>(kit::find_name(*state_, name), name);
  }
  // The same, but waits until an actor has the name: co_await it, with timeout() or stop() if need
  // be. The actor may have ended since. Errors: timed_out, cancelled.
  template <class T>
  tasks::limited_task<kit::name_call<T>> wait(std::string name) const {
    return tasks::limited_task<kit::name_call<T>>(std::in_place, state_, std::move(name));
  }

  // All names, in alphabetical order.
  std::vector<std::string> names() const { return kit::names_of(*state_); }

 private:
  std::shared_ptr<kit::registry_state> state_;
};

}  // namespace troupe
