#include "observe/live_trace.hpp"

#include <algorithm>
#include <new>

#include "observe/output.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::observe {
namespace {

bool exists = false;  // of the observer's thread

}  // namespace

std::unique_ptr<live_trace> live_trace::begin() {
  if (exists || tracing()) return nullptr;
  return std::unique_ptr<live_trace>(new live_trace);
}

live_trace::live_trace() noexcept {
  exists = true;
  for (const ring* thread_ring = first_ring(); thread_ring != nullptr;
       thread_ring = thread_ring->next)
    thread_ring->first = thread_ring->events.written();
  watch(watched::events);
}

live_trace::~live_trace() {
  if (!has_ended()) unwatch(watched::events);
  exists = false;
}

void live_trace::end() noexcept {
  unwatch(watched::events);
  writer_.emplace(began_);
  next_ring_ = first_ring();
}

bool live_trace::add_part(std::string& text) {
  const std::size_t before = text.size();
  output out(text);
  // A thread without an event in this trace has no line.
  while (next_ring_ != nullptr && next_ring_->events.written() <= next_ring_->first)
    next_ring_ = next_ring_->next;
  if (next_ == part::threads && next_ring_ == nullptr) next_ = part::foot;
  switch (next_) {
    case part::head:
      writer_->begin(out);
      next_ = part::threads;
      break;
    case part::threads:
      writer_->add(out, *next_ring_);
      next_ring_ = next_ring_->next;
      break;
    case part::foot:
      writer_->end(out);
      next_ = part::none;
      break;
    case part::none:
      return false;
  }
  out.flush();
  if (out.failed()) throw std::bad_alloc();
  // No text of it has a line break inside: the only ones lie between the events.
  std::replace(text.begin() + static_cast<std::ptrdiff_t>(before), text.end(), '\n', ' ');
  if (next_ == part::none) text += '\n';
  return true;
}

}  // namespace troupe::observe
