#include "runtime/observing/component_list.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/observing/numbers/numbers_json.hpp"

namespace troupe::observing {
namespace {

// Writes the numbers of one group as members of an object.
class members_only final : public observe::row_sink {
 public:
  members_only(json_text& to, std::string prefix) : to_(to), prefix_(std::move(prefix)) {}
  void take(const observe::number_group& of, std::vector<std::string>,
            const void* values) override {
    if (of.prefix() == prefix_) write_members(to_, of, values);
  }

 private:
  json_text& to_;
  const std::string prefix_;
};

}  // namespace

component_list::entry& component_list::entry::operator=(entry&& other) noexcept {
  leave();
  of_ = std::move(other.of_);
  at_ = other.at_;
  return *this;
}

void component_list::entry::leave() noexcept {
  if (of_ == nullptr) return;
  std::list<component> gone;
  {
    std::lock_guard held(of_->mutex_);
    gone.splice(gone.end(), of_->all_, at_);
  }
  of_ = nullptr;
}

component_list::entry component_list::add(component one) {
  std::lock_guard held(mutex_);
  const std::string name = one.name;
  const auto is_taken = [&](const component& other) {
    return std::string_view(other.list) == one.list && other.name == one.name;
  };
  for (int number = 2; std::ranges::any_of(all_, is_taken); ++number)
    one.name = name + " (" + std::to_string(number) + ")";
  all_.push_back(std::move(one));
  return entry(shared_from_this(), std::prev(all_.end()));
}

std::vector<component_list::component> component_list::now() {
  std::lock_guard held(mutex_);
  return {all_.begin(), all_.end()};
}

void component_list::collect(observe::row_sink& to, const std::string& runtime) {
  for (const component& one : now()) {
    if (one.read) one.read(to, {runtime, one.name});
  }
}

void component_list::write(json_text& to) {
  const std::vector<component> all = now();
  std::set<std::string_view> lists;
  for (const component& one : all) lists.insert(one.list);
  for (const std::string_view list : lists) {
    to.key(list).open('[');
    for (const component& one : all) {
      if (one.list != list) continue;
      to.open('{').member(one.label, one.name);
      members_only inside(to, "troupe_" + std::string(list));
      if (one.read) one.read(inside, {"", one.name});
      if (one.write) one.write(to);
      to.close('}');
    }
    to.close(']');
  }
}

}  // namespace troupe::observing
