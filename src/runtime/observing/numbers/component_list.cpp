#include "runtime/observing/numbers/component_list.hpp"

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
  members_only(json_text& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  void take(const observe::number_group& group, std::vector<std::string>,
            const void* values) override {
    if (group.prefix() == prefix_) write_members(out_, group, values);
  }

 private:
  json_text& out_;
  const std::string prefix_;
};

}  // namespace

component_list::entry& component_list::entry::operator=(entry&& other) noexcept {
  leave();
  list_ = std::move(other.list_);
  at_ = other.at_;
  return *this;
}

void component_list::entry::leave() noexcept {
  if (list_ == nullptr) return;
  std::list<component> gone;
  {
    std::lock_guard held(list_->mutex_);
    gone.splice(gone.end(), list_->all_, at_);
  }
  list_ = nullptr;
}

component_list::entry component_list::add(component added) {
  std::lock_guard held(mutex_);
  const std::string name = added.name;
  const auto is_taken = [&](const component& other) {
    return std::string_view(other.list) == added.list && other.name == added.name;
  };
  for (int number = 2; std::ranges::any_of(all_, is_taken); ++number)
    added.name = name + " (" + std::to_string(number) + ")";
  all_.push_back(std::move(added));
  return entry(shared_from_this(), std::prev(all_.end()));
}

std::vector<component_list::component> component_list::now() {
  std::lock_guard held(mutex_);
  return {all_.begin(), all_.end()};
}

void component_list::collect(observe::row_sink& rows, const std::string& runtime) {
  for (const component& shown : now()) {
    if (shown.read) shown.read(rows, {runtime, shown.name});
  }
}

void component_list::write(json_text& out) {
  const std::vector<component> all = now();
  std::set<std::string_view> lists;
  for (const component& shown : all) lists.insert(shown.list);
  for (const std::string_view list : lists) {
    out.key(list).open('[');
    for (const component& shown : all) {
      if (shown.list != list) continue;
      out.open('{').member(shown.label, shown.name);
      members_only inside(out, "troupe_" + std::string(list));
      if (shown.read) shown.read(inside, {"", shown.name});
      if (shown.write) shown.write(out);
      out.close('}');
    }
    out.close(']');
  }
}

}  // namespace troupe::observing
