#include "troupe/kit/actors/end_watch.hpp"

namespace troupe::kit {

std::shared_ptr<end_watch> end_watch::start(future<ended> end, unique_function<void()> on_end) {
  auto watch = std::make_shared<end_watch>(std::move(end), std::move(on_end));
  watch->self_ = watch;
  if (!watch->state_->attach(*watch)) on_resolved(*watch);
  return watch;
}

void end_watch::cancel() noexcept {
  if (!state_->detach(*this)) return;
  const std::shared_ptr<end_watch> last = std::move(self_);
}

void end_watch::on_resolved(tasks::observer& self) noexcept {
  tasks::tell_nested(static_cast<end_watch&>(self), &tell);
}

void end_watch::tell(tasks::observer& self) noexcept {
  auto& mine = static_cast<end_watch&>(self);
  const std::shared_ptr<end_watch> last = std::move(mine.self_);
  mine.on_end_();
}

}  // namespace troupe::kit
