// lru_map: a hash map with its entries in the order of their last use. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>

namespace troupe::kit {

// Thread: one at a time. Cost: as std::unordered_map, and two pointers for each entry.
template <class Key, class Value, class Hash = std::hash<Key>>
class lru_map {
 public:
  lru_map() = default;
  lru_map(const lru_map&) = delete;
  lru_map& operator=(const lru_map&) = delete;

  std::size_t size() const noexcept { return entries_.size(); }

  // Null if there is no such entry. Does not count as a use.
  Value* find(const Key& key) {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second.value;
  }
  // Counts as a use.
  Value* use(const Key& key) {
    if (newest_ != nullptr && *newest_->key == key) return &newest_->value;
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    unlink(found->second);
    link(found->second);
    return &found->second.value;
  }
  // The entry of the key, made of the arguments if there is none. Counts as a use.
  template <class... Args>
  Value& emplace(const Key& key, Args&&... args) {
    const auto [at, added] = entries_.try_emplace(key, std::forward<Args>(args)...);
    at->second.key = &at->first;
    if (!added) unlink(at->second);
    link(at->second);
    return at->second.value;
  }
  // Returns whether there was an entry.
  bool erase(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    unlink(found->second);
    entries_.erase(found);
    return true;
  }
  // The key that was used least recently; null if there is none.
  const Key* oldest() const noexcept { return oldest_ == nullptr ? nullptr : oldest_->key; }
  void clear() noexcept {
    entries_.clear();
    oldest_ = newest_ = nullptr;
  }
  // Erases those for which `drops(key, value)` holds.
  template <class Drops>
  void erase_if(Drops drops) {
    for (entry* visited = oldest_; visited != nullptr;) {
      entry* const next = visited->newer;
      if (drops(*visited->key, visited->value)) erase(Key(*visited->key));
      visited = next;
    }
  }

 private:
  struct entry {
    template <class... Args>
    explicit entry(Args&&... args) : value(std::forward<Args>(args)...) {}
    Value value;
    const Key* key = nullptr;
    entry* older = nullptr;
    entry* newer = nullptr;
  };
  void link(entry& added) noexcept {
    added.older = newest_;
    added.newer = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->newer) = &added;
    newest_ = &added;
  }
  void unlink(entry& removed) noexcept {
    (removed.older == nullptr ? oldest_ : removed.older->newer) = removed.newer;
    (removed.newer == nullptr ? newest_ : removed.newer->older) = removed.older;
  }

  std::unordered_map<Key, entry, Hash> entries_;
  entry* oldest_ = nullptr;
  entry* newest_ = nullptr;
};

}  // namespace troupe::kit
