#include "runtime/failures/stall_notes.hpp"

#include <new>
#include <utility>

namespace troupe {

void stall_notes::tell(listener noted) noexcept {
  std::lock_guard lock(mutex_);
  noted_ = noted;
}

void stall_notes::note(std::size_t count, std::string_view lines) noexcept try {
  constexpr std::size_t bytes_max = 1'000;
  std::string text = "run() was out of work while " + std::to_string(count) +
                     (count == 1 ? " turn was" : " turns were") +
                     " suspended: nothing in the program will end these waits.";
  text += lines.substr(0, bytes_max);
  listener noted = nullptr;
  {
    std::lock_guard lock(mutex_);
    ++notes_.times;
    notes_.text = std::move(text);
    noted = noted_;
  }
  if (noted != nullptr) noted();
} catch (const std::bad_alloc&) {
  // run() throws the same
}

stall_notes::taken stall_notes::take() noexcept {
  std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace troupe
