#include "runtime/failure_log.hpp"

#include <new>
#include <utility>

#include "troupe/base/error.hpp"

namespace troupe {

failure_log::failure_log()
    : spare_(room),
      others_{{std::make_exception_ptr(error("troupe: memory was out, and failures that happened then could not be kept")), {},
               true}} {}

void failure_log::add(std::exception_ptr what, const actor::failed_call& where) noexcept {
  std::list<entry> node;
  try {
    node.emplace_back();
  } catch (const std::bad_alloc&) {
    // There are the spare ones.
  }
  std::lock_guard lock(mutex_);
  ++added_;
  if (node.empty() && !spare_.empty()) node.splice(node.begin(), spare_, spare_.begin());
  if (node.empty()) return waiting_.splice(waiting_.end(), others_);
  node.front() = {std::move(what), where};
  waiting_.splice(waiting_.end(), node);
}

std::uint64_t failure_log::count() const {
  std::lock_guard lock(mutex_);
  return added_;
}

std::vector<failure> failure_log::all() const {
  std::vector<failure> all;
  std::lock_guard lock(mutex_);
  all.reserve(waiting_.size());
  for (const entry& one : waiting_) all.push_back({one.what, one.where.actor, one.where.method, one.where.id});
  return all;
}

failure failure_log::thrown() const {
  std::lock_guard lock(mutex_);
  return {thrown_.what, thrown_.where.actor, thrown_.where.method, thrown_.where.id};
}

void failure_log::clear() noexcept {
  std::list<entry> gone;
  {
    std::lock_guard lock(mutex_);
    gone.swap(waiting_);
  }
  for (entry& one : gone) {
    if (!one.of_others) one.what = nullptr;
    one.where.keeps = nullptr;
  }
  std::lock_guard lock(mutex_);
  reuse(gone);
}

void failure_log::throw_first() {
  entry before;
  std::exception_ptr what;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    std::list<entry> first;
    first.splice(first.begin(), waiting_, waiting_.begin());
    what = first.front().what;
    before = std::exchange(thrown_, first.front());
    first.front().where.keeps = nullptr;  // thrown_ has it
    reuse(first);
  }
  before.what = nullptr;
  std::rethrow_exception(what);
}

// Under the mutex, and others hold what was thrown.
void failure_log::reuse(std::list<entry>& nodes) noexcept {
  while (!nodes.empty()) {
    std::list<entry>& to = nodes.front().of_others ? others_ : spare_;
    if (&to == &spare_ && spare_.size() == room) {
      nodes.pop_front();
    } else {
      to.splice(to.begin(), nodes, nodes.begin());
    }
  }
}

}  // namespace troupe
