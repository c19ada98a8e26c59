// attachments: the objects that components have attached to a runtime. Thread: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "troupe/runtime/attachment.hpp"

namespace troupe::detail {

class attachments {
 public:
  attachment& get(const void* key, std::unique_ptr<attachment> (*make)()) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<attachment>& found = all_[key];
    if (found == nullptr) found = make();
    return *found;
  }
  // At the end of the runtime, by the thread that ends it.
  void close() noexcept {
    for (auto& [key, attached] : all_) {
      if (attached != nullptr) attached->close();
    }
  }
  void clear() noexcept { all_.clear(); }

 private:
  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<attachment>> all_;
};

}  // namespace troupe::detail
