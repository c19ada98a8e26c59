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

number_source::number_source(const number_group& of, std::string name, reader read, same_name taken)
    : of_(of), name_(name), read_(std::move(read)) {
  source_list& known = source_list::get();
  std::lock_guard held(known.mutex);
  const auto is_taken = [&] {
    return std::ranges::any_of(known.all, [&](const number_source* other) {
      return &other->of_ == &of && other->name_ == name_;
    });
  };
  for (int number = 2; is_taken(); ++number) {
    if (taken == same_name::refuse)
      throw usage_error("troupe: \"" + name_ + "\" has numbers of " + std::string(of.prefix()) +
                        " already: choose another name");
    name_ = name + " (" + std::to_string(number) + ")";
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
  for (const number_source* const source : known.all) source->read_(to, source->name_);
}

}  // namespace troupe::observe
