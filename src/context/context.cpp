#include "troupe/context/context.hpp"

#include <algorithm>
#include <new>

#include "context/blocks/block.hpp"
#include "context/blocks/poison.hpp"
#include "context/blocks/tally.hpp"
#include "context/thread_context.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe {

using contexts::block;

namespace {

// The gap between two objects, where AddressSanitizer watches. It describes memory in units of 8
// bytes.
constexpr std::size_t red_zone = contexts::poisons ? 16 : 0, grain = contexts::poisons ? 8 : 1;

std::size_t size_on(std::size_t bytes) noexcept {
  return (bytes + grain - 1) / grain * grain + red_zone;
}

// Chooses the next larger class than the class of the newest block, as far as the context's limit
// allows.
std::uint8_t next_class(const block& newest, std::size_t need, std::size_t left) noexcept {
  auto chosen = std::min<std::uint8_t>(static_cast<std::uint8_t>(newest.size_class + 1),
                                       contexts::own_class - 1);
  while (chosen > 0 && contexts::class_bytes[chosen] > left &&
         contexts::class_bytes[chosen - 1u] - sizeof(block) >= need)
    --chosen;
  return chosen;
}

std::uint64_t next_number() {
  contexts::tally& mine = contexts::tally_here();
  return mine.number << 40 |
         static_cast<std::uint64_t>(contexts::count(mine, &contexts::tally::created, 1));
}

}  // namespace

context::context(block& first, const context_options& options) noexcept
    : block_(&first), last_(&first), options_(options), number_(next_number()) {
  at_ = reinterpret_cast<std::byte*>(this + 1);
  end_ = first.end;
}

owned_context make_context(const context_options& options) {
  if (options.bytes_max < contexts::page_bytes) {
    throw option_error(
        "troupe: make_context: bytes_max is less than the 4096 of the first block; give it more");
  }
  contexts::tally& mine = contexts::tally_here();
  block& first = contexts::take_block(0, sizeof(context), nullptr);
  first.total = first.bytes;
  contexts::unpoison(first.begin(), sizeof(context));
  auto& created = *::new (first.begin()) context(first, options);
  contexts::count(mine, &contexts::tally::active, 1);
  const char* const name = options.name.text();
  observe::trace(observe::event::context_made, *name == '\0' ? nullptr : name, created.number());
  return owned_context(created);
}

std::size_t context::bytes() const noexcept { return last_->total; }

void* context::allocate_slowly(std::size_t bytes, std::size_t alignment) {
  if (!open_)
    throw usage_error(
        "troupe: a context was released, and something persisted in it is being written; it is "
        "constant");
  contexts::check_running(number_, name(), runs_on_);
  if (bytes > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) throw std::bad_alloc();
  const std::size_t need = size_on(bytes);
  alignment = std::max(alignment, grain);
  for (;;) {
    const std::uintptr_t begin =
        (reinterpret_cast<std::uintptr_t>(at_) + alignment - 1) & ~(alignment - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(end_);
    if (begin <= end && need <= end - begin) {
      at_ = reinterpret_cast<std::byte*>(begin) + need;
      contexts::unpoison(reinterpret_cast<void*>(begin), bytes);
      return reinterpret_cast<void*>(begin);
    }
    take_block(need + alignment);
  }
}

// Continues in a block with so much space: the next block that was retained, or a new one.
void context::take_block(std::size_t room) {
  block* next = block_->newer;
  if (next == nullptr || next->room() < room) {
    trim();
    const std::size_t left = options_.bytes_max - std::min(options_.bytes_max, block_->total);
    next = &contexts::take_block(next_class(*block_, room, left), room, this);
    if (next->bytes > left) {
      contexts::return_block(*next);
      throw context_full();
    }
    next->older = block_;
    next->total = block_->total + next->bytes;
    block_->newer = last_ = next;
  }
  block_ = next;
  at_ = next->begin();
  end_ = next->end;
}

void context::do_deallocate(void* memory, std::size_t bytes, std::size_t) {
  contexts::poison(memory, bytes);
}

void context::trim() noexcept { trim_to(block_->total); }

// Returns the newest blocks that are not in use to the pool, until the blocks have at most `total`
// bytes.
void context::trim_to(std::size_t total) noexcept {
  while (last_ != block_ && last_->total > total) {
    block& gone = *last_;
    last_ = gone.older;
    last_->newer = nullptr;
    contexts::drop_block(gone);
  }
}

context_counters count_contexts() {
  const contexts::tally_sums sums = contexts::sum_tallies();
  return {sums.active, sums.persisted, sums.bytes, sums.rollbacks_kept};
}

}  // namespace troupe
