// window_options: how much may wait in a window.
#pragma once

#include <cstddef>
#include <string>

namespace troupe::cluster {

struct window_options {
  window_options() noexcept {}
  // How many bytes this node may have waiting at one subject or on their way to it: not taken. A
  // message that is larger than the window goes alone. 4 or more.
  std::size_t bytes = 1024 * 1024;
  std::size_t messages = 4'096;
  // Of the subjects that have windows, each of which one node takes. Default: all.
  std::string prefix;
};

}  // namespace troupe::cluster
