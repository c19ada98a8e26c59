// batches: the transaction that turns fill, the one that is being stored, and their numbers.
//
// Lock: the engine's mutex is held in each function, and while the open batch is changed.
//
// Invariants
//   B1  Batches are stored one after the other, in the order of their numbers: the last one that
//       is stored has a smaller number than the one that is being stored, and that one has a
//       smaller number than the open one. A batch that is not stored leaves a gap.
//   B2  One task stores batches, as long as there is something to store.
//   B3  A message that came with the open batch has its place there; no other batch is changed.
//   B4  The whole state of an actor is in the open batch once at most: a later turn replaces it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "durable/memory/actor_in_memory.hpp"
#include "durable/memory/filling.hpp"
#include "durable/memory/wall_clock.hpp"
#include "troupe/durable/error.hpp"

namespace troupe::durable::parts {

class batches {
 public:
  batches() = default;
  batches(const batches&) = delete;
  batches& operator=(const batches&) = delete;

  // The storage has this batch as the last one.
  void go_on_after(std::uint64_t number) noexcept { last_number_ = stored_ = number; }

  // The open batch, which begins now if there is none.
  filling& open();
  // Null: nothing is to be stored.
  filling* filled() const noexcept { return open_.get(); }
  bool is_open(std::uint64_t number) const noexcept {
    return open_ != nullptr && number == open_->data.number;
  }
  std::uint64_t stored() const noexcept { return stored_; }
  bool is_stored(std::uint64_t number) const noexcept { return number <= stored_; }
  // The number of the last batch that has anything in it.
  std::uint64_t newest() const noexcept;
  shard_set touched() const noexcept;
  // Whether a batch that is not stored has changes of that actor.
  bool has_changes_of(const activation& actor) const;

  // The task that stores batches (B2). Returns false if it is at work already.
  bool begin_commits() noexcept;
  void end_commits() noexcept;
  bool commits() const noexcept { return commits_; }

  // Null, and the task has ended: nothing is to be stored. `always`: an empty batch is taken as
  // well.
  std::shared_ptr<filling> take(bool always, std::int64_t now_ns);
  // The batch that is being stored has been stored; or it was not, or its outcome is unknown.
  void stored(const filling& taken) noexcept;
  void not_stored() noexcept { committing_ = nullptr; }
  // Returns the open batch, which is given up.
  std::shared_ptr<filling> drop_open() noexcept { return std::exchange(open_, nullptr); }

  // The effects of a turn. The message comes into the inbox.
  void arrive(const record_ref& message);
  // It leaves the inbox, if it is there. A dead letter's row is added and removed, so that its
  // number is not used again.
  void leave_inbox(const record& message, bool is_dead);
  // An empty `state` of an actor with events is not stored.
  void keep_state(activation& actor, bytes state, std::vector<bytes> events);
  // A caller waits for the batch because of this message, which was handled.
  void begin_commit_span(const record& message);
  // `failed`: null for a value.
  void keep_answer(const record& message, const bytes& value, const handler_failed* failed,
                   due_time now);
  void keep_reminders(turn_state& done);
  void keep_dead_letter(const record& message, const handler_failed& why, due_time now);

 private:
  std::shared_ptr<filling> open_;
  std::shared_ptr<const filling> committing_;
  std::uint64_t last_number_ = 0;  // of the batch that is being filled or committed last
  std::uint64_t stored_ = 0;       // of the last batch that is stored
  bool commits_ = false;
};

}  // namespace troupe::durable::parts
