#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "observe/numbers/registry.hpp"
#include "troupe/base/error.hpp"

namespace troupe::observe {
namespace {

// The list of the process. Never destroyed, as static sources may end after it otherwise.
struct source_list {
  std::mutex mutex;
  std::vector<number_source*> all;

  static source_list& get() {
    static source_list& instance = *new source_list;
    return instance;
  }
};

}  // namespace

number_source::number_source(const number_group& group, std::string name, reader read,
                             same_name taken)
    : group_(group), name_(name), read_(std::move(read)), taken_(taken) {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  const auto find = [&](const std::string& wanted) -> number_source* {
    const auto found = std::ranges::find_if(known.all, [&](const number_source* other) {
      return &other->group_ == &group && other->name_ == wanted;
    });
    return found == known.all.end() ? nullptr : *found;
  };
  number_source* const before = find(name);
  if (before != nullptr && taken == same_name::refuse && before->taken_ == same_name::refuse)
    throw usage_error("troupe: \"" + name + "\" has numbers of " + std::string(group.prefix()) +
                      " already: choose another name");
  std::string free = before == nullptr ? "" : name;
  for (int number = 2; !free.empty() && find(free) != nullptr; ++number)
    free = name + " (" + std::to_string(number) + ")";
  known.all.push_back(this);
  if (before != nullptr) (taken == same_name::number ? name_ : before->name_) = std::move(free);
}

number_source::~number_source() {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  std::erase(known.all, this);
}

void collect_sources(row_sink& to) {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  for (const number_source* const source : known.all) source->read_(to, source->name_);
}

}  // namespace troupe::observe
