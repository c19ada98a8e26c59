#include "troupe/http/router.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "troupe/base/error.hpp"

namespace troupe::http {

namespace {

struct segment {
  std::string literal;
  bool is_parameter = false, is_rest = false;
};

struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

// "/a/b" as "a", "b"; "/" as "".
template <class Function>
void each_segment(std::string_view path, Function&& function) {
  for (;;) {
    path.remove_prefix(1);
    const std::size_t slash = path.find('/');
    function(path.substr(0, slash));
    if (slash == std::string_view::npos) return;
    path.remove_prefix(slash);
  }
}

[[noreturn]] void fail(std::string_view pattern, const char* why) {
  throw usage_error("troupe: http::router: the pattern '" + std::string(pattern) + "' " + why);
}

std::vector<segment> read_pattern(std::string_view pattern) {
  if (!pattern.starts_with('/')) fail(pattern, "does not begin with '/'");
  std::vector<segment> made;
  std::size_t parameters = 0;
  each_segment(pattern, [&](std::string_view one) {
    if (!made.empty() && made.back().is_rest) fail(pattern, "goes on behind a rest");
    segment next;
    if (one.starts_with('{')) {
      if (!one.ends_with('}') || one.size() < 3) fail(pattern, "has a '{' without its '}', or without a name");
      next.is_parameter = true;
      next.is_rest = one.ends_with("...}");
      if (++parameters > path_values::most) fail(pattern, "has more than 8 parameters");
    } else if (one.find_first_of("{}") != std::string_view::npos) {
      fail(pattern, "has a parameter that is not a whole segment");
    }
    next.literal = one;
    made.push_back(std::move(next));
  });
  return made;
}

}  // namespace

struct router::place {
  std::string pattern;
  std::vector<segment> segments;
  std::array<route, static_cast<std::size_t>(method::other)> by_method;

  const route* of(method by) const noexcept {
    if (by == method::other) return nullptr;
    const route& exact = by_method[static_cast<std::size_t>(by)];
    if (exact.call != nullptr) return &exact;
    const route& get = by_method[static_cast<std::size_t>(method::get)];
    return by == method::head && get.call != nullptr ? &get : nullptr;
  }

  bool matches(std::string_view path, path_values& values) const {
    values.count = 0;
    for (const segment& one : segments) {
      if (path.empty()) return false;
      path.remove_prefix(1);
      if (one.is_rest) {
        values.value[values.count++] = path;
        return true;
      }
      const std::size_t slash = path.find('/');
      const std::string_view part = path.substr(0, slash);
      if (one.is_parameter) {
        if (part.empty()) return false;
        values.value[values.count++] = part;
      } else if (part != one.literal) {
        return false;
      }
      path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
    }
    return path.empty();
  }

  // Literals before parameters before a rest, segment by segment.
  friend bool wins(const place& a, const place& b) {
    const auto rank = [](const segment& one) { return one.is_rest ? 2 : one.is_parameter ? 1 : 0; };
    for (std::size_t i = 0; i < a.segments.size() && i < b.segments.size(); ++i) {
      const int first = rank(a.segments[i]), second = rank(b.segments[i]);
      if (first != second) return first < second;
    }
    return a.segments.size() > b.segments.size();
  }
};

struct router::table {
  std::unordered_map<std::string, std::unique_ptr<place>, text_hash, std::equal_to<>> exact;
  std::vector<std::unique_ptr<place>> patterns;  // those that win first
};

router::router() : table_(std::make_unique<table>()) {}
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;
router::~router() = default;

void router::add_call(method on, std::string_view pattern, std::unique_ptr<route_call> call, const route_options& options) {
  std::vector<segment> segments = read_pattern(pattern);
  const auto parameters = static_cast<std::size_t>(
      std::count_if(segments.begin(), segments.end(), [](const segment& one) { return one.is_parameter; }));
  if (call->parameters != parameters) fail(pattern, "has another number of parameters than its handler");
  if (on == method::other || on == method::connect) fail(pattern, "is for a method that has no routes");
  place* at = nullptr;
  if (parameters == 0) {
    auto& there = table_->exact[std::string(pattern)];
    if (there == nullptr) there = std::make_unique<place>();
    at = there.get();
  } else {
    for (const auto& one : table_->patterns) {
      if (one->pattern == pattern) at = one.get();
    }
    if (at == nullptr) {
      auto made = std::make_unique<place>();
      at = made.get();
      made->segments = segments;
      const auto before =
          std::find_if(table_->patterns.begin(), table_->patterns.end(), [&](const auto& one) { return wins(*made, *one); });
      table_->patterns.insert(before, std::move(made));
    }
  }
  at->pattern = pattern;
  at->segments = std::move(segments);
  route& to = at->by_method[static_cast<std::size_t>(on)];
  if (to.call != nullptr) fail(pattern, "has a handler for this method already");
  to.call = std::move(call);
  to.options = options;
}

router::found router::find(method by, std::string_view path) const {
  found result;
  if (const auto exact = table_->exact.find(path); exact != table_->exact.end()) {
    result.at = exact->second.get();
    result.handler = result.at->of(by);
    return result;
  }
  if (!path.starts_with('/')) return result;
  for (const auto& one : table_->patterns) {
    path_values values;
    if (!one->matches(path, values)) continue;
    const route* const handler = one->of(by);
    // One that fits less well may have the method.
    if (result.at == nullptr) result.at = one.get();
    if (handler == nullptr) continue;
    result.at = one.get();
    result.handler = handler;
    result.values = values;
    return result;
  }
  return result;
}

std::string router::allowed(const place* at) const {
  std::array<bool, static_cast<std::size_t>(method::other)> has{};
  const auto add = [&](const place& one) {
    for (std::size_t i = 0; i < has.size(); ++i) has[i] = has[i] || one.of(static_cast<method>(i)) != nullptr;
  };
  if (at != nullptr) {
    add(*at);
  } else {
    for (const auto& [path, one] : table_->exact) add(*one);
    for (const auto& one : table_->patterns) add(*one);
  }
  has[static_cast<std::size_t>(method::options)] = true;
  std::string list;
  for (std::size_t i = 0; i < has.size(); ++i) {
    if (has[i]) list += (list.empty() ? "" : ", ") + std::string(name_of(static_cast<method>(i)));
  }
  return list;
}

}  // namespace troupe::http
