#include "cluster/messages/waiting_line.hpp"

namespace troupe::cluster::parts {

waiting_line::place::place(waiting_line& line, std::uint64_t number)
    : line_(line), number_(number) {
  line_.places_.try_emplace(number_);
}
waiting_line::place::~place() {
  line_.places_.erase(number_);
  if (line_.places_.empty()) return;
  if (const auto& first = line_.places_.begin()->second) first->set();
}
task<> waiting_line::place::comes_first() const {
  while (line_.places_.begin()->first != number_) {
    std::optional<event>& comes = line_.places_.at(number_);
    comes.emplace();
    const event turn = *comes;
    co_await turn.wait();
  }
}

}  // namespace troupe::cluster::parts
