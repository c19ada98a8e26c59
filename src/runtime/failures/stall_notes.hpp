// stall_notes: the stalls of a runtime that no warning has reported yet. run() notes them, and the
// observer, which lies above it, takes them (observing/warning_watch.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe {

// Thread: any.
class stall_notes {
 public:
  using listener = void (*)() noexcept;
  // From now on `noted` is called after each note, by the thread that has made it.
  void tell(listener noted) noexcept;

  // `count` turns were suspended when run() found no work; `lines` has the words of `stalled`.
  // Notes nothing when memory is out.
  void note(std::size_t count, std::string_view lines) noexcept;

  struct taken {
    std::uint64_t times = 0;  // since the last take
    std::string text = {};    // of the last one
  };
  taken take() noexcept;

 private:
  std::mutex mutex_;  // guards the others
  listener noted_ = nullptr;
  taken notes_;
};

}  // namespace troupe
