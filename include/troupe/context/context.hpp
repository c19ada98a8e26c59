// context: a heap for one piece of work: a callback, a turn, a connection.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/literal.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/context/in_context.hpp"
#include "troupe/context/owner_of.hpp"

namespace troupe {

// Options of one context.
//
// Example:
//     troupe::owned_context work = troupe::make_context({.bytes_max = 1 << 20, .name = "upload"});
//     try { static_cast<void>(work->allocate(2 << 20)); }
//     catch (const troupe::context_full& full) { std::cerr << full.what() << '\n'; }
struct context_options {
  // Maximum bytes of blocks; the first block has 4 KiB. An allocation beyond it throws
  // context_full. Default: no limit.
  std::size_t bytes_max = SIZE_MAX;
  // Bytes of blocks that a rollback keeps for later allocations; the others go back to the pool.
  // Default 512 KiB.
  std::size_t retain_bytes = std::size_t{512} << 10;
  // Used in the texts of errors. Default: none; the context's number then identifies it.
  literal name = "";
};

// A context has reached its bytes_max. Nothing was allocated, and the context is unchanged. Remedy:
// roll it back, or allow it more.
class context_full : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "troupe: a context has reached context_options::bytes_max: roll back memory that is not "
           "needed any more, or raise the limit";
  }
};

class snapshot;
class owned_context;
// Creates a context. Thread: any. Cost: about 20 ns, including its release. Throws std::bad_alloc;
// option_error if bytes_max is less than a block.
[[nodiscard]] owned_context make_context(const context_options& options = {});

namespace contexts {

struct block;
struct keep;
struct finalizer {
  finalizer* older;
  void (*destroy)(finalizer& self) noexcept;
};
struct access;

template <class T>
inline constexpr bool is_discarded = std::is_trivially_destructible_v<T>;
template <class C, class Traits>
inline constexpr bool
    is_discarded<std::basic_string<C, Traits, std::pmr::polymorphic_allocator<C>>> = true;
template <class T>
inline constexpr bool is_discarded<std::vector<T, std::pmr::polymorphic_allocator<T>>> =
    is_discarded<T>;

}  // namespace contexts

// Whether objects of this class may be discarded with their memory, without a call of their
// destructor. True for trivially destructible classes, and for std::pmr::string and
// std::pmr::vector of such classes, which own only memory of the context. Specialize it for a class
// of yours whose destructor only returns memory to its std::pmr allocator.
//
// Example (declarations):
//     struct path {
//       std::pmr::vector<int> steps;
//       using allocator_type = std::pmr::polymorphic_allocator<>;
//     };
//     template <> inline constexpr bool troupe::discarded_with_context<path> = true;
template <class T>
inline constexpr bool discarded_with_context = contexts::is_discarded<T>;

// Allocates memory by advancing a pointer. All of it is freed at once, when the context is released
// or rolled back to a snapshot; deallocate() does nothing. It is a std::pmr::memory_resource: pass
// its address to std::pmr containers.
//
// Thread: one at a time, not always the same one. A holder of a persisted object may be on any
// thread. Cost: about 1 ns to allocate. Memory: 4 KiB for a context that is little used, then
// blocks of 16, 64, 256 KiB and 2 MiB. Errors: std::bad_alloc, or context_full; the context is then
// unchanged.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     // all its memory is in the context, the strings as well
//     auto words = work->make<std::pmr::vector<std::pmr::string>>();
//     words->emplace_back("a word that is too long for the string itself");
//     troupe::snapshot before(*work);
//     auto more = work->make<std::pmr::string>(1'000, 'x');
//     work->rollback(before);  // `more` is freed, `words` is not
//     std::cout << words->front() << '\n';
class context final : public std::pmr::memory_resource {
 public:
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  // Uninitialized memory. `alignment` is a power of two.
  [[nodiscard]] TROUPE_INLINE void* allocate(std::size_t bytes,
                                             std::size_t alignment = alignof(std::max_align_t)) {
#if !TROUPE_PLAIN_BLOCKS && !(defined(TROUPE_CHECKED) && TROUPE_CHECKED)
    const auto begin = (reinterpret_cast<std::uintptr_t>(at_) + alignment - 1) & ~(alignment - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(end_);
    if (begin <= end && bytes <= end - begin) [[likely]] {
      at_ = reinterpret_cast<std::byte*>(begin) + bytes;
      return reinterpret_cast<void*>(begin);
    }
#endif
    return allocate_slowly(bytes, alignment);
  }

  // Constructs an object in the context. If T takes a std::pmr allocator, it gets this context, and
  // its parts do too. When the object is discarded, its destructor is called, newest object first,
  // unless the class is discarded_with_context. If the constructor throws, the exception is passed
  // on, and the memory is discarded with the rest.
  template <class T, class... Args>
  in_context<T> make(Args&&... args) {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T>,
                  "troupe: context::make: T must be a type of objects; for an array use "
                  "std::pmr::vector or std::array");
    static_assert(std::is_nothrow_destructible_v<T>,
                  "troupe: context::make: the destructor of T may throw; a context could not "
                  "discard the objects behind it");
    if constexpr (discarded_with_context<T>) {
      return in_context<T>(
          construct<T>(allocate(sizeof(T), alignof(T)), std::forward<Args>(args)...));
    } else {
      auto* finalized_object =
          ::new (allocate(sizeof(finalized<T>), alignof(finalized<T>))) finalized<T>;
      T& object = construct<T>(&finalized_object->place, std::forward<Args>(args)...);
      finalized_object->destroy = [](contexts::finalizer& self) noexcept {
        std::destroy_at(
            std::launder(reinterpret_cast<T*>(&static_cast<finalized<T>&>(self).place)));
      };
      finalized_object->older = finalizers_;
      finalizers_ = finalized_object;
      return in_context<T>(object);
    }
  }

  // Discards everything that was allocated since the snapshot: destructors are called, newest
  // first, before any of the memory is reused. If a part of this memory was persisted and is still
  // held, the rollback discards nothing: all the memory stays unchanged for the holders, and no
  // destructor is called. The context continues in other memory, and the rollback is counted as
  // kept. Snapshots that were taken since then can no longer be used. Cost: a few nanoseconds, and
  // the destructors. Throws usage_error for a snapshot of another context, for a snapshot that an
  // earlier rollback has ended, and in a destructor that a rollback calls.
  void rollback(snapshot& target);

  // Returns the blocks that a rollback kept to the pool. For an idle connection.
  void trim() noexcept;

  // Bytes of all its blocks.
  std::size_t bytes() const noexcept;
  // Unique in the process.
  std::uint64_t number() const noexcept { return number_; }
  const char* name() const noexcept { return options_.name.text(); }

 private:
  friend contexts::access;
  friend class snapshot;
  friend class owned_context;
  friend owned_context make_context(const context_options& options);

  template <class T>
  struct finalized : contexts::finalizer {
    alignas(T) std::byte place[sizeof(T)];
  };
  template <class T, class... Args>
  T& construct(void* place, Args&&... args) {
    return *std::uninitialized_construct_using_allocator(static_cast<T*>(place),
                                                         std::pmr::polymorphic_allocator<>(this),
                                                         std::forward<Args>(args)...);
  }

  context(contexts::block& first, const context_options& options) noexcept;
  ~context() override = default;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  void* allocate_slowly(std::size_t bytes, std::size_t alignment);
  void take_block(std::size_t room);
  void trim_to(std::size_t total) noexcept;

  std::byte* at_;  // the next free byte, in block_
  std::byte* end_;
  contexts::finalizer* finalizers_ = nullptr;  // of objects with a destructor, newest first
  contexts::keep* keeps_ = nullptr;            // of objects that were persisted since newest_
  snapshot* newest_ = nullptr;
  contexts::block* block_;  // the block in use; newer blocks are kept for later
  contexts::block* last_;   // the newest of these
  const context_options options_;
  const std::uint64_t number_;
  // used by share_count: one for the owner, and one for each keep
  std::atomic<std::uint32_t> shares_{1};
  // in checked builds: the thread whose current context this is
  std::atomic<const void*> runs_on_{nullptr};
  bool open_ = true;  // it has an owner
  bool discarding_ = false;
};

// Owns a context. Its destructor discards all the context's memory in one step, as by a rollback.
// Movable. Thread: any. Memory of persisted objects stays as long as they are held.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     std::pmr::vector<int> numbers({1, 2, 3}, work.get());
class owned_context {
 public:
  owned_context() = default;
  owned_context(owned_context&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)) {}
  owned_context& operator=(owned_context&& other) noexcept {
    if (this != &other) {
      release();
      context_ = std::exchange(other.context_, nullptr);
    }
    return *this;
  }
  ~owned_context() { release(); }

  context& operator*() const noexcept { return *context_; }
  context* operator->() const noexcept { return context_; }
  context* get() const noexcept { return context_; }
  explicit operator bool() const noexcept { return context_ != nullptr; }
  void release() noexcept {
    if (context_ != nullptr) end(*std::exchange(context_, nullptr));
  }

 private:
  friend owned_context make_context(const context_options& options);
  explicit owned_context(context& owned) noexcept : context_(&owned) {}
  static void end(context& owner) noexcept;
  context* context_ = nullptr;
};

// The context of the work that this thread runs; null if it has none. The scheduler sets it for
// actors and tasks that have a context of their own (spawn_options::context), for submitted calls,
// and for the callbacks of a connection; context_scope sets it for a scope in plain code.
context* current_context() noexcept;
// The same; throws usage_error if there is none.
context& this_context();

// Makes a context the current one of this thread until the end of the scope. Nested scopes end in
// reverse order. Do not use it across a co_await, since the coroutine may continue on another
// thread.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     troupe::context_scope inside(*work);
//     std::pmr::string text("allocated in the context", &troupe::this_context());
class context_scope {
 public:
  // In checked builds, throws unguarded_error if another thread uses the context.
  explicit context_scope(context& entered);
  context_scope(const context_scope&) = delete;
  context_scope& operator=(const context_scope&) = delete;
  ~context_scope();

 private:
  context* const before_;
  context& entered_;
};

// Numbers over all contexts of the process; exact while none is created or released.
struct context_counters {
  std::int64_t active = 0;     // contexts that have an owner
  std::int64_t persisted = 0;  // contexts without an owner that are kept by persisted objects
  std::int64_t bytes = 0;      // of the blocks of all these
  // rollbacks and releases so far that left memory to persisted objects
  std::int64_t rollbacks_kept = 0;
};
context_counters count_contexts();

}  // namespace troupe
