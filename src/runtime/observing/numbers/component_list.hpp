// component_list: parts of a program that lie above its runtime and show numbers of their own in
// its summary, such as stores of durable actors.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "observe/numbers/tables.hpp"
#include "runtime/observing/numbers/json_text.hpp"

namespace troupe {
class runtime;
}

namespace troupe::observing {

// Thread: any.
class component_list : public std::enable_shared_from_this<component_list> {
 public:
  struct component {
    const char* list;   // the member of the summary, which lists components of this kind
    const char* label;  // the member that has the name
    std::string name;   // a second one of that name in its list gets " (2)", and so on
    // Writes its numbers, a row for each object. Called by the thread that makes the summary, under
    // no lock, even if the entry has just gone. The labels begin with the component's labels: the
    // runtime and the name. Numbers whose prefix is "troupe_" and the list's name are also members
    // of its object in the summary.
    std::function<void(observe::row_sink&, const std::vector<std::string>& labels)> read = {};
    // Adds more members to the object. Called likewise.
    std::function<void(json_text&)> write = {};
  };
  // Takes the component out of the list when it goes.
  class entry {
   public:
    entry() = default;
    entry(entry&& other) noexcept = default;
    entry& operator=(entry&& other) noexcept;
    ~entry() { leave(); }

   private:
    friend class component_list;
    entry(std::shared_ptr<component_list> list, std::list<component>::iterator at) noexcept
        : list_(std::move(list)), at_(at) {}
    void leave() noexcept;

    std::shared_ptr<component_list> list_;
    std::list<component>::iterator at_;
  };

  // Throws std::bad_alloc.
  [[nodiscard]] entry add(component added);
  // Adds a member for each list. Throws std::bad_alloc.
  void write(json_text& out);
  // All numbers; `runtime` is the first label. Throws std::bad_alloc.
  void collect(observe::row_sink& rows, const std::string& runtime);

 private:
  std::vector<component> now();

  std::mutex mutex_;
  std::list<component> all_;
};

// The components of that runtime. They may outlive it.
std::shared_ptr<component_list> components_of(const runtime& rt);
// The components of the calling code's runtime. Throws usage_error naming `caller` if it has none.
std::shared_ptr<component_list> components_here(const char* caller);

}  // namespace troupe::observing
