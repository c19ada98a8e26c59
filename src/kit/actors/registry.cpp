#include "troupe/kit/actors/registry.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "troupe/base/small_mutex.hpp"
#include "troupe/kit/actors/end_watch.hpp"

namespace troupe::kit {

// Refs are dropped and promises are resolved without the mutex.
class registry_state {
 public:
  struct entry {
    named_actor actor;
    std::uint64_t number = 0;  // differs from the number of an actor that has the same name later
    std::shared_ptr<end_watch> watch;
  };
  using waiting = std::vector<promise<named_actor>>;

  // Returns the number of the entry; 0 if the name is taken.
  std::uint64_t add(const std::string& name, const named_actor& named) {
    waiting woken;
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      if (actors_.contains(name)) return 0;
      number = ++added_;
      actors_.try_emplace(name, named, number, nullptr);
      if (const auto found = waiting_.find(name); found != waiting_.end()) {
        woken = std::move(found->second);
        waiting_.erase(found);
      }
    }
    for (promise<named_actor>& each : woken) each.set_value(named);
    return number;
  }
  void keep_watch(const std::string& name, std::uint64_t number, std::shared_ptr<end_watch> watch) {
    const std::lock_guard lock(mutex_);
    const auto found = actors_.find(name);
    if (found != actors_.end() && found->second.number == number)
      found->second.watch = std::move(watch);
  }
  // With number 0: whichever actor has the name.
  bool remove(std::string_view name, std::uint64_t number) {
    entry gone;
    {
      const std::lock_guard lock(mutex_);
      const auto found = actors_.find(name);
      if (found == actors_.end() || (number != 0 && found->second.number != number)) return false;
      gone = std::move(found->second);
      actors_.erase(found);
    }
    if (gone.watch != nullptr && number == 0) gone.watch->cancel();
    return true;
  }
  named_actor find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = actors_.find(name);
    return found == actors_.end() ? named_actor{} : found->second.actor;
  }
  // The actor that has the name, or else a future of the one that will have it.
  named_actor find_or_wait(const std::string& name, future<named_actor>& later) {
    const std::lock_guard lock(mutex_);
    if (const auto found = actors_.find(name); found != actors_.end()) return found->second.actor;
    waiting& all = waiting_[name];
    std::erase_if(all, [](const promise<named_actor>& waiting) { return waiting.abandoned(); });
    later = all.emplace_back().get_future();
    return {};
  }
  // Parties that wait no longer are forgotten when others come, and here.
  void forget_waiting(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(name);
    if (found == waiting_.end()) return;
    std::erase_if(found->second,
                  [](const promise<named_actor>& waiting) { return waiting.abandoned(); });
    if (found->second.empty()) waiting_.erase(found);
  }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    all.reserve(actors_.size());
    for (const auto& [name, named] : actors_) all.push_back(name);
    return all;
  }

 private:
  mutable base::small_mutex mutex_;
  std::map<std::string, entry, std::less<>> actors_;
  std::map<std::string, waiting, std::less<>> waiting_;
  std::uint64_t added_ = 0;
};

namespace {

// Whichever way a wait ends, its promise is forgotten.
class name_wait {
 public:
  name_wait(registry_state& registry, const std::string& name) noexcept
      : registry_(registry), name_(name) {}
  name_wait(const name_wait&) = delete;
  name_wait& operator=(const name_wait&) = delete;
  ~name_wait() { registry_.forget_waiting(name_); }

 private:
  registry_state& registry_;
  const std::string& name_;
};

}  // namespace

std::shared_ptr<registry_state> make_registry() { return std::make_shared<registry_state>(); }

bool add_name(const std::shared_ptr<registry_state>& registry, std::string&& name,
              named_actor named, future<ended> ends) {
  const std::uint64_t number = registry->add(name, named);
  if (number == 0) return false;
  // If the actor has ended, this removes the name again at once.
  auto watch = end_watch::start(std::move(ends), [state = std::weak_ptr(registry), name, number] {
    if (const auto names = state.lock()) names->remove(name, number);
  });
  registry->keep_watch(name, number, std::move(watch));
  return true;
}

bool remove_name(registry_state& registry, std::string_view name) {
  return registry.remove(name, 0);
}

named_actor find_name(registry_state& registry, std::string_view name) {
  return registry.find(name);
}

task<named_actor> wait_for_name(std::shared_ptr<registry_state> registry, std::string name,
                                tasks::limits within) {
  const name_wait forgets(*registry, name);
  future<named_actor> later;
  named_actor found = registry->find_or_wait(name, later);
  if (found.ref != nullptr) co_return found;
  auto limited = std::move(later).timeout(within.left()).stop(within.stop());
  co_return co_await std::move(limited);
}

std::vector<std::string> names_of(const registry_state& registry) { return registry.names(); }

void refuse_name_of_other(std::string_view name, const char* wanted, const char* found) {
  throw usage_error("troupe: registry: the name " + std::string(name) + " belongs to a " + found +
                    ", not to a " + wanted + "; find it by the class by which it was added");
}

void refuse_to_name_none(std::string_view name) {
  throw usage_error("troupe: registry: the ref for the name " + std::string(name) +
                    " refers to no actor");
}

}  // namespace troupe::kit
