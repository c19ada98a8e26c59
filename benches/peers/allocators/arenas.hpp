// arenas: what the rivals of the rows context/* allocate from: malloc, or a
// std::pmr::monotonic_buffer_resource.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory_resource>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Each object is freed separately, so the program has to keep what it has to free.
class malloc_arena {
 public:
  using text = std::string;
  using numbers = std::vector<int>;
  using table = std::map<std::string, int>;

  void* allocate(std::size_t bytes) { return blocks_.emplace_back(std::malloc(bytes)); }
  template <class T, class... Args>
  T& make(Args&&... args) {
    return *std::get<std::vector<T*>>(objects_).emplace_back(new T(std::forward<Args>(args)...));
  }
  void discard() {
    for (void* block : blocks_) std::free(block);
    blocks_.clear();
    std::apply([](auto&... all) { (free(all), ...); }, objects_);
  }

 private:
  template <class T>
  static void free(std::vector<T*>& all) {
    for (T* one : all) delete one;
    all.clear();
  }
  std::vector<void*> blocks_;
  std::tuple<std::vector<text*>, std::vector<numbers*>, std::vector<table*>> objects_;
};

// Has a buffer that everything fits into; nothing has to be destroyed.
class monotonic_arena {
 public:
  using text = std::pmr::string;
  using numbers = std::pmr::vector<int>;
  using table = std::pmr::map<std::pmr::string, int>;

  void* allocate(std::size_t bytes) { return resource_.allocate(bytes); }
  template <class T, class... Args>
  T& make(Args&&... args) {
    return *::new (resource_.allocate(sizeof(T), alignof(T)))
        T(std::forward<Args>(args)..., &resource_);
  }
  void discard() { resource_.release(); }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 20);
  std::pmr::monotonic_buffer_resource resource_{buffer_.data(), buffer_.size()};
};
