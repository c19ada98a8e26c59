#include "runtime/failures/failure_log.hpp"

#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "base/invariant.hpp"
#include "troupe/base/error.hpp"

namespace troupe {
namespace {

// Estimate for an exception's object and the allocator's overhead: its size is not known.
constexpr std::size_t exception_bytes = 256;

// The objects of an exception that run() has thrown and that unwinds the scope of the runtime
// itself.
thread_local std::unique_ptr<const std::shared_ptr<const void>> outlives_runtime;

}  // namespace

void failure_log::entry::swap(entry& other) noexcept {
  std::swap(where, other.where);
  std::swap(exception, other.exception);
  std::swap(bytes, other.bytes);
  std::swap(of_others, other.of_others);
  std::swap(heard, other.heard);
  std::swap(number, other.number);
}

failure_log::failure_log(std::size_t kept_max, std::size_t bytes_max)
    : kept_max_(kept_max), bytes_max_(bytes_max), spare_(spare_max) {
  entry& others = others_.emplace_back();
  others.exception = std::make_exception_ptr(
      error("troupe: memory was out, and failures that happened then could not be kept"));
  others.of_others = true;
}

std::size_t failure_log::bytes_of(const std::exception_ptr& failure,
                                  const actor::failed_call& where) noexcept {
  std::size_t text = 0;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    const char* const said = exception.what();
    text = said == nullptr ? 0 : std::strlen(said);
  } catch (...) {
  }
  return sizeof(entry) + exception_bytes + text + where.keeps.bytes;
}

void failure_log::add(std::exception_ptr failure, const actor::failed_call& where,
                      bool heard) noexcept {
  const std::size_t bytes = bytes_of(failure, where);
  std::list<entry> node, gone;
  try {
    node.emplace_back();
  } catch (const std::bad_alloc&) {
    // Then a spare node is used.
  }
  {
    std::lock_guard lock(mutex_);
    ++added_;
    if (node.empty() && !spare_.empty()) node.splice(node.begin(), spare_, spare_.begin());
    if (node.empty()) {
      ++dropped_;
      node.splice(node.begin(), others_);
    } else {
      entry& added = node.front();
      added.where = where;
      added.exception = std::move(failure);
      added.bytes = bytes;
      added.heard = heard;
    }
    if (!node.empty()) {
      node.front().number = static_cast<std::uint32_t>(added_);
      put(node, gone);
    }
  }
  forget(gone);
}

bool failure_log::is_newest(const entry& entry) const noexcept {
  const std::list<failure_log::entry>& last = newest_.empty() ? first_ : newest_;
  return last.empty() || static_cast<std::int32_t>(entry.number - last.back().number) > 0;
}

// The caller holds the mutex.
void failure_log::put(std::list<entry>& node, std::list<entry>& gone) noexcept {
  TROUPE_INVARIANT(is_newest(node.front()), "L1");
  const std::size_t bytes = node.front().bytes;
  const bool is_early =
      newest_.empty() && (first_.empty() || (first_.size() < (kept_max_ + 1) / 2 &&
                                             first_bytes_ + bytes <= bytes_max_ / 2));
  bytes_ += bytes;
  if (is_early) {
    first_bytes_ += bytes;
    first_.splice(first_.end(), node);
  } else {
    newest_.splice(newest_.end(), node);
  }
  drop_surplus(gone);
}

// The caller holds the mutex. The first failure stays (L2): when all in `first_` have been thrown,
// the oldest of `newest_` becomes the first.
void failure_log::drop_surplus(std::list<entry>& gone) noexcept {
  if (first_.empty() && !newest_.empty()) {
    first_bytes_ += newest_.front().bytes;
    first_.splice(first_.end(), newest_, newest_.begin());
  }
  while (!newest_.empty() && (first_.size() + newest_.size() > kept_max_ || bytes_ > bytes_max_)) {
    bytes_ -= newest_.front().bytes;
    ++dropped_;
    gone.splice(gone.end(), newest_, newest_.begin());
  }
  TROUPE_INVARIANT(!first_.empty() || newest_.empty(), "L2");
}

failure_log::counts failure_log::count() const {
  std::lock_guard lock(mutex_);
  return {added_, dropped_, first_.size() + newest_.size(), bytes_};
}

failure failure_log::as_failure(const entry& entry) {
  failure failure;
  failure.memory = entry.where.keeps.held;
  failure.what = entry.exception;
  failure.actor = entry.where.actor;
  failure.method = entry.where.method;
  failure.actor_id = entry.where.id;
  return failure;
}

std::vector<failure> failure_log::all() const {
  std::vector<failure> all;
  std::lock_guard lock(mutex_);
  all.reserve(first_.size() + newest_.size());
  for (const std::list<entry>* part : {&first_, &newest_}) {
    for (const entry& logged : *part) all.push_back(as_failure(logged));
  }
  return all;
}

std::vector<failure> failure_log::unheard() const {
  std::vector<failure> all;
  std::lock_guard lock(mutex_);
  for (const std::list<entry>* part : {&first_, &newest_}) {
    for (const entry& entry : *part) {
      if (!entry.heard) all.push_back(as_failure(entry));
    }
  }
  return all;
}

// The caller holds the mutex.
void failure_log::take_out(std::list<entry>& all) noexcept {
  all.splice(all.end(), first_);
  all.splice(all.end(), newest_);
  bytes_ = first_bytes_ = 0;
}

void failure_log::put_back(std::list<entry>& all) noexcept {
  std::list<entry> gone;
  {
    std::lock_guard lock(mutex_);
    all.splice(all.end(), first_);
    all.splice(all.end(), newest_);
    bytes_ = first_bytes_ = 0;
    while (!all.empty()) {
      std::list<entry> node;
      node.splice(node.begin(), all, all.begin());
      put(node, gone);
    }
  }
  forget(gone);
}

std::vector<failure> failure_log::take_all() {
  std::list<entry> taken;
  {
    std::lock_guard lock(mutex_);
    take_out(taken);
  }
  std::vector<failure> all;
  try {
    all.reserve(taken.size());
    for (const entry& logged : taken) all.push_back(as_failure(logged));
  } catch (...) {
    all.clear();
    put_back(taken);
    throw;
  }
  forget(taken);
  return all;
}

failure failure_log::thrown() const {
  std::lock_guard lock(mutex_);
  return as_failure(thrown_);
}

void failure_log::clear() noexcept {
  std::list<entry> gone;
  {
    std::lock_guard lock(mutex_);
    take_out(gone);
  }
  forget(gone);
}

void failure_log::throw_first() {
  std::list<entry> first, gone;
  entry before;
  std::exception_ptr failure;
  {
    std::lock_guard lock(mutex_);
    if (first_.empty()) return;
    first.splice(first.begin(), first_, first_.begin());
    bytes_ -= first.front().bytes;
    first_bytes_ -= first.front().bytes;
    drop_surplus(gone);
    failure = first.front().exception;
    if (first.front().of_others) {
      before.exception = failure;  // its node also keeps it
    } else {
      before.swap(first.front());
    }
    before.swap(thrown_);
  }
  forget(gone);
  forget(first);
  std::rethrow_exception(failure);
}

// Destroys the exceptions, then the objects that they refer to; then the nodes become spare ones.
void failure_log::forget(std::list<entry>& gone) noexcept {
  for (entry& entry : gone) {
    if (!entry.of_others) entry.exception = nullptr;
    entry.where = {};
  }
  std::lock_guard lock(mutex_);
  for (auto node = gone.begin(); node != gone.end();) {
    const auto next = std::next(node);
    std::list<entry>& list = node->of_others ? others_ : spare_;
    if (&list == &others_ || spare_.size() < spare_max) list.splice(list.begin(), gone, node);
    node = next;
  }
}

void failure_log::end() noexcept {
  clear();
  entry last;
  {
    std::lock_guard lock(mutex_);
    thrown_.swap(last);
  }
  if (std::uncaught_exceptions() == 0 || last.where.keeps.held == nullptr) return;
  using keeper = const std::shared_ptr<const void>;
  std::unique_ptr<keeper> held(new (std::nothrow) keeper(std::move(last.where.keeps.held)));
  const auto before = std::exchange(outlives_runtime, std::move(held));
  last.exception = nullptr;
}

}  // namespace troupe
