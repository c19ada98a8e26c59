#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "observe/numbers/registry.hpp"
#include "troupe/base/error.hpp"

namespace troupe::observe {
namespace {

// Of the process. Never destroyed, as static sources may end after it otherwise.
struct source_list {
  std::mutex mutex;
  std::vector<number_source*> all;

  static source_list& get() {
    static source_list& instance = *new source_list;
    return instance;
  }
};

}  // namespace

number_source::number_source(const number_group& of, std::string name,
                             std::function<void(row_sink&)> read)
    : of_(of), name_(std::move(name)), read_(std::move(read)) {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  for (const number_source* const other : known.all) {
    if (&other->of_ == &of && other->name_ == name_)
      throw usage_error("troupe: \"" + name_ + "\" has numbers of " + std::string(of.prefix()) +
                        " already: choose another name");
  }
  known.all.push_back(this);
}

number_source::~number_source() {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  std::erase(known.all, this);
}

void collect_sources(row_sink& to) {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  for (const number_source* const one : known.all) one->read_(to);
}

}  // namespace troupe::observe
