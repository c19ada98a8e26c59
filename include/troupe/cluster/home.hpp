// home: an actor's view of its own place in a cluster: its key and its node.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/base/type_name.hpp"
#include "troupe/cluster/calls.hpp"

namespace troupe::cluster {

template <class T>
class ref;

// An actor whose constructor takes a `home` gets its own. Copyable. Thread: any. Lifetime: may
// outlive the actor.
//
// Example (declarations):
//     #include <troupe/cluster/node.hpp>
//     struct Cart {
//       explicit Cart(troupe::cluster::home its) : here(std::move(its)) {}
//       void add(std::string item) {
//         here.get<Cart>("all").tell<&Cart::add>(here.key() + " bought " + item);
//       }
//       troupe::cluster::home here;
//     };
class home {
 public:
  home(parts::state_ref on, std::string key) noexcept : on_(std::move(on)), key_(std::move(key)) {}
  const std::string& key() const noexcept { return key_; }
  // As in node.
  template <class T>
  ref<T> get(std::string_view key) const;
  template <class T>
  ref<T> single() const;

 private:
  parts::state_ref on_;
  std::string key_;
};

}  // namespace troupe::cluster
