// persist: keeps an object in a context alive as long as it is held, by a count.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "troupe/context/context.hpp"
#include "troupe/context/in_context.hpp"

namespace troupe {

template <class T>
class persisted;
template <class T>
struct is_sendable;

namespace contexts {

// Counts the holders of an object.
struct share {
  explicit share(void (*when_free)(share&) noexcept) noexcept : free(when_free) {}
  void add() noexcept;
  void drop() noexcept;  // frees with the last holder
  std::atomic<std::uint32_t> count{1};
  void (*const free)(share&) noexcept;
};

// Each returns a share for the caller.
share& keep_whole(context& owner);
share& keep_since_snapshot(context& owner);
bool is_since_snapshot(const context& owner, const void* object) noexcept;

struct persisting {
  template <class T>
  static persisted<T> make(const T& object, share& counted) noexcept {
    return persisted<T>(object, counted);
  }
};

}  // namespace contexts

// A persisted object. It is constant, since several threads may hold it. Copyable, may be sent.
// Thread: any. Lifetime: the last copy frees the memory; if the context has discarded the object
// meanwhile, the last copy also calls the destructors, on its own thread.
//
// Example:
//     struct Reader {
//       void read(troupe::persisted<std::pmr::string> text) { std::cout << *text << '\n'; }
//     };
//     troupe::runtime rt;
//     auto reader = rt.spawn<Reader>();
//     troupe::owned_context work = troupe::make_context();
//     reader.tell<&Reader::read>(
//         troupe::persist(work->make<std::pmr::string>("longer lived than its context")));
//     work.release();
//     rt.run();
template <class T>
class persisted {
 public:
  persisted() = default;  // holds nothing
  persisted(const persisted& other) noexcept : object_(other.object_), share_(other.share_) {
    if (share_ != nullptr) share_->add();
  }
  persisted(persisted&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)),
        share_(std::exchange(other.share_, nullptr)) {}
  persisted& operator=(persisted other) noexcept {
    std::swap(object_, other.object_);
    std::swap(share_, other.share_);
    return *this;
  }
  ~persisted() {
    if (share_ != nullptr) share_->drop();
  }

  const T& operator*() const noexcept { return *object_; }
  const T* operator->() const noexcept { return object_; }
  const T* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  friend contexts::persisting;
  persisted(const T& object, contexts::share& counted) noexcept
      : object_(std::addressof(object)), share_(&counted) {}
  const T* object_ = nullptr;
  contexts::share* share_ = nullptr;
};

// It owns its object.
template <class T>
struct is_sendable<persisted<T>> : std::true_type {};

// Keeps the object, and everything that its context holds now, to which the object may refer. From
// now on no thread may write to any of it, except that the owner may write to a part that no reader
// uses. Thread: the context's own. Cost: about 20 ns, and the same again for each open snapshot; a
// rollback then leaves the memory that was allocated since its snapshot to the holders. For small
// objects promote() is better; auto_escape() chooses. Throws std::bad_alloc; usage_error in a
// destructor that a rollback calls.
template <class T>
[[nodiscard]] persisted<T> persist(const in_context<T>& handle) {
  return contexts::persisting::make<T>(*handle, contexts::keep_whole(*owner_of(handle.get())));
}

// As persist(), but keeps only memory that was allocated since the context's newest snapshot, so
// that the rest may be freed. For an object that refers to nothing older. If the object itself is
// older, this is persist().
template <class T>
[[nodiscard]] persisted<T> persist_since_snapshot(const in_context<T>& handle) {
  context& owner = *owner_of(handle.get());
  return contexts::persisting::make<T>(*handle, contexts::is_since_snapshot(owner, handle.get())
                                                    ? contexts::keep_since_snapshot(owner)
                                                    : contexts::keep_whole(owner));
}

}  // namespace troupe
