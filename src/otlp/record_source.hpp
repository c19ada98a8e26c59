// record_source: the records of one kind, spans or lines of the log, as the thread that exports
// them sees them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::otlp {

// Thread: the exporting one; waiting(), dropped() and wake(): any.
class record_source {
 public:
  record_source() = default;
  record_source(const record_source&) = delete;
  record_source& operator=(const record_source&) = delete;
  virtual ~record_source() = default;

  // Takes all records that wait, for the calls of next() that follow.
  virtual void take_all() noexcept = 0;
  // Writes the body of a request with at most `most` of the records that were taken, of each
  // thread the oldest first, and frees these. Returns how many; 0: none is left. If memory is
  // out, `body` is empty.
  virtual std::size_t next(std::string_view resource, std::size_t most,
                           std::string& body) noexcept = 0;
  // As many of the records that were taken were sent, or given up: others have space.
  virtual void forget(std::size_t count) noexcept = 0;
  // The program keeps records no longer.
  virtual void close() noexcept = 0;

  virtual std::uint32_t wakes() const noexcept = 0;
  virtual void wait(std::uint32_t seen, std::chrono::nanoseconds at_most) noexcept = 0;
  virtual void wake() noexcept = 0;
  virtual std::uint64_t dropped() const noexcept = 0;
  virtual std::size_t waiting() const noexcept = 0;
};

// The records of a list with the functions of a base::record_queue.
template <class List, class Record>
class list_source final : public record_source {
 public:
  using body_function = std::string (*)(std::string_view resource, const Record* first);
  list_source(List& list, body_function body_of) noexcept : list_(list), body_of_(body_of) {}
  ~list_source() override { free(taken_); }

  void take_all() noexcept override { taken_ = list_.take_all(); }
  std::size_t next(std::string_view resource, std::size_t most,
                   std::string& body) noexcept override {
    body.clear();
    if (taken_ == nullptr) return 0;
    Record* const first = taken_;
    Record* last = first;
    std::size_t count = 1;
    for (; count < most && last->next != nullptr; ++count) last = last->next;
    taken_ = std::exchange(last->next, nullptr);
    try {
      body = body_of_(resource, first);
    } catch (const std::bad_alloc&) {
      body.clear();
    }
    free(first);
    return count;
  }
  void forget(std::size_t count) noexcept override { list_.forget(count); }
  void close() noexcept override { list_.close(); }

  std::uint32_t wakes() const noexcept override { return list_.wakes(); }
  void wait(std::uint32_t seen, std::chrono::nanoseconds at_most) noexcept override {
    list_.wait(seen, at_most);
  }
  void wake() noexcept override { list_.wake(); }
  std::uint64_t dropped() const noexcept override { return list_.dropped(); }
  std::size_t waiting() const noexcept override { return list_.waiting(); }

 private:
  static void free(Record* first) noexcept {
    while (first != nullptr) {
      const std::unique_ptr<Record> gone(first);
      first = first->next;
    }
  }

  List& list_;
  const body_function body_of_;
  Record* taken_ = nullptr;
};

}  // namespace troupe::otlp
