#include "troupe/http/router.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/mix_bits.hpp"
#include "base/text/eight_letters.hpp"
#include "http/routing/folder.hpp"
#include "troupe/base/error.hpp"

namespace troupe::http {

namespace {

// A parameter has no text: its name makes no difference to which paths match.
struct segment {
  std::string literal;
  bool is_parameter = false, is_rest = false;
  friend bool operator==(const segment&, const segment&) noexcept = default;
};

constexpr unsigned bit_of(method verb) noexcept { return 1u << static_cast<unsigned>(verb); }

// Of paths that the program chose: it takes half as many instructions as std::hash.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    std::uint64_t sum = text.size();
    const std::string_view last = text.size() < 8 ? text : text.substr(text.size() - 8);
    for (; text.size() > 8; text.remove_prefix(8))
      sum = std::rotl((sum ^ base::load_eight(text.data())) * base::golden_step, 23);
    return base::mix_bits(sum ^ base::load_few(last));
  }
};

// Splits "/a/b" into "a" and "b", and "/" into "".
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

[[noreturn]] void fail(std::string_view pattern, const std::string& why) {
  throw usage_error("troupe: http::router: the pattern '" + std::string(pattern) + "' " + why);
}

std::vector<segment> read_pattern(std::string_view pattern) {
  if (!pattern.starts_with('/')) fail(pattern, "does not begin with '/'");
  std::vector<segment> segments;
  std::size_t parameters = 0;
  each_segment(pattern, [&](std::string_view part) {
    if (!segments.empty() && segments.back().is_rest) fail(pattern, "has a segment behind a rest");
    segment next;
    if (part.starts_with('{')) {
      if (!part.ends_with('}') || part.size() < 3)
        fail(pattern, "has a '{' without its '}', or without a name");
      next.is_parameter = true;
      next.is_rest = part.ends_with("...}");
      if (++parameters > path_values::most) fail(pattern, "has more than 8 parameters");
    } else if (part.find_first_of("{}") != std::string_view::npos) {
      fail(pattern, "has a parameter that is not a whole segment");
    } else {
      next.literal = part;
    }
    segments.push_back(std::move(next));
  });
  return segments;
}

// The names of the parameters of a pattern without flaws.
std::vector<std::string> names_in(std::string_view pattern) {
  std::vector<std::string> names;
  each_segment(pattern, [&](std::string_view part) {
    if (!part.starts_with('{')) return;
    part = part.substr(1, part.size() - 2);
    if (part.ends_with("...")) part.remove_suffix(3);
    names.emplace_back(part);
  });
  return names;
}

std::size_t parameters_of(const std::vector<segment>& pattern) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(pattern, [](const segment& segment) { return segment.is_parameter; }));
}

}  // namespace

struct router::route_entry {
  std::vector<segment> segments;
  std::array<route, static_cast<std::size_t>(method::other)> by_method;
  unsigned methods = 0;  // as in found::methods

  const route* of(method by) const noexcept {
    if (by == method::other) return nullptr;
    const route& exact = by_method[static_cast<std::size_t>(by)];
    if (exact.call != nullptr) return &exact;
    const route& get = by_method[static_cast<std::size_t>(method::get)];
    return by == method::head && get.call != nullptr ? &get : nullptr;
  }

  bool matches(std::string_view path, path_values& values) const {
    values.count = 0;
    for (const segment& segment : segments) {
      if (path.empty()) return false;
      path.remove_prefix(1);
      if (segment.is_rest) {
        values.value[values.count++] = path;
        return true;
      }
      const std::size_t slash = path.find('/');
      const std::string_view part = path.substr(0, slash);
      if (segment.is_parameter) {
        if (part.empty()) return false;
        values.value[values.count++] = part;
      } else if (part != segment.literal) {
        return false;
      }
      path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
    }
    return path.empty();
  }

  void remove(method by) noexcept {
    by_method[static_cast<std::size_t>(by)] = {};
    methods = 0;
    for (std::size_t i = 0; i < by_method.size(); ++i) {
      const auto verb = static_cast<method>(i);
      if (by_method[i].call != nullptr)
        methods |= bit_of(verb) | (verb == method::get ? bit_of(method::head) : 0);
    }
  }

  // Literals win over parameters, and parameters over a rest, segment by segment.
  friend bool wins(const route_entry& a, const route_entry& b) {
    const auto rank = [](const segment& segment) {
      return segment.is_rest ? 2 : segment.is_parameter ? 1 : 0;
    };
    for (std::size_t i = 0; i < a.segments.size() && i < b.segments.size(); ++i) {
      const int first = rank(a.segments[i]), second = rank(b.segments[i]);
      if (first != second) return first < second;
    }
    return a.segments.size() > b.segments.size();
  }
};

struct router::table {
  std::unordered_map<std::string, std::unique_ptr<route_entry>, text_hash, std::equal_to<>> exact;
  // ordered: a pattern that wins over another one is before it
  std::vector<std::unique_ptr<route_entry>> patterns;
  route otherwise;
  std::string page;
};

router::router() : table_(std::make_unique<table>()) {}
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;
router::~router() = default;

void router::check_is_here() const {
  if (table_ != nullptr) return;
  throw usage_error(
      "troupe: http::router: its routes were moved away, as into a server, which keeps them as "
      "they are: add and remove routes "
      "before that, and make a router for each server");
}

router& router::files(std::string_view prefix, const std::string& path) {
  return files(prefix, path, file_options());
}

router& router::files(std::string_view prefix, const std::string& path,
                      const file_options& options) {
  if (!prefix.ends_with('/'))
    throw usage_error("troupe: http::router: '" + std::string(prefix) + "' does not end with '/'");
  return get(std::string(prefix) + "{path...}",
             [root = open_folder(path, options)](const request& asked, std::string_view rest) {
               return find_file(*root, asked, rest);
             });
}

void router::add_call(method on, std::string_view pattern, std::unique_ptr<route_call> call,
                      const route_options& options) {
  check_is_here();
  std::vector<segment> segments = read_pattern(pattern);
  const std::size_t parameters = parameters_of(segments);
  if (call->parameters != parameters && (call->parameters != 0 || !call->takes_request)) {
    fail(pattern,
         "has " + std::to_string(parameters) + (parameters == 1 ? " parameter" : " parameters") +
             " in braces, but its handler takes " + std::to_string(call->parameters) +
             ": it has to take each of them, in their order, behind the request or without it");
  }
  if (on == method::other || on == method::connect)
    fail(pattern, "is for a method that has no routes");
  route_entry* at = nullptr;
  if (parameters == 0) {
    auto& exact = table_->exact[std::string(pattern)];
    if (exact == nullptr) exact = std::make_unique<route_entry>();
    at = exact.get();
  } else {
    for (const auto& known : table_->patterns) {
      if (known->segments == segments) at = known.get();
    }
    if (at == nullptr) {
      auto entry = std::make_unique<route_entry>();
      at = entry.get();
      entry->segments = std::move(segments);
      const auto before = std::find_if(table_->patterns.begin(), table_->patterns.end(),
                                       [&](const auto& other) { return wins(*entry, *other); });
      table_->patterns.insert(before, std::move(entry));
    }
  }
  route& target = at->by_method[static_cast<std::size_t>(on)];
  if (target.call != nullptr) fail(pattern, "has a handler for this method already");
  target.call = std::move(call);
  target.options = options;
  target.names = names_in(pattern);
  target.pattern = pattern;
  at->methods |= bit_of(on) | (on == method::get ? bit_of(method::head) : 0);
}

namespace {

// Answers requests without a route, where a function runs in front of the answer.
class no_route_call final : public route_call {
 public:
  no_route_call() { reads_body = false; }
  bool run(request& asked, const path_values& values, response& answer) const override {
    answer = router::no_route(asked.method(), values.methods);
    return true;
  }
  bool start(request&, const path_values&, std::optional<task<response>>&) const override {
    return false;
  }
};

// Answers OPTIONS where a function runs in front of the answer.
class options_call final : public route_call {
 public:
  explicit options_call(unsigned methods) : methods_(methods) {}
  bool run(request&, const path_values&, response& answer) const override {
    answer = response(204).field("Allow", router::allowed(methods_));
    return true;
  }
  bool start(request&, const path_values&, std::optional<task<response>>&) const override {
    return false;
  }

 private:
  const unsigned methods_;
};

}  // namespace

router& router::add_around(std::optional<std::string_view> pattern,
                           const std::shared_ptr<const around_call>& function, bool options) {
  check_is_here();
  const std::vector<segment> segments = pattern ? read_pattern(*pattern) : std::vector<segment>();
  std::size_t count = 0;
  const auto wrap = [&](route_entry& entry) {
    route& own = entry.by_method[static_cast<std::size_t>(method::options)];
    if (options && own.call == nullptr) {
      for (const route& known : entry.by_method) {
        if (known.call != nullptr) own.names = known.names;
      }
      own.call = std::make_unique<options_call>(entry.methods);
      entry.methods |= bit_of(method::options);
    }
    for (route& known : entry.by_method) {
      if (known.call == nullptr) continue;
      known.call = put_around(std::move(known.call), function);
      ++count;
    }
  };
  for (auto& [path, entry] : table_->exact) {
    if (!pattern || path == *pattern) wrap(*entry);
  }
  for (auto& entry : table_->patterns) {
    if (!pattern || entry->segments == segments) wrap(*entry);
  }
  if (pattern && count == 0) fail(*pattern, "has no routes to put a function in front of");
  if (!pattern) {
    std::unique_ptr<const route_call>& otherwise = table_->otherwise.call;
    if (otherwise == nullptr) otherwise = std::make_unique<no_route_call>();
    otherwise = put_around(std::move(otherwise), function);
  }
  return *this;
}

std::size_t router::remove(std::string_view pattern) { return take_away(pattern, ~0u); }
std::size_t router::remove(method removed, std::string_view pattern) {
  return take_away(pattern, bit_of(removed));
}

std::size_t router::take_away(std::string_view pattern, unsigned methods) {
  check_is_here();
  const std::vector<segment> segments = read_pattern(pattern);
  const bool is_exact = parameters_of(segments) == 0;
  // Rejected: a look-up by hash. The only call of the hash function is inlined into find(), which
  // runs for each request; a second call would end that.
  const auto exact = std::ranges::find_if(
      table_->exact, [&](const auto& entry) { return is_exact && entry.first == pattern; });
  const auto general = std::ranges::find_if(table_->patterns, [&](const auto& entry) {
    return !is_exact && entry->segments == segments;
  });
  if (exact == table_->exact.end() && general == table_->patterns.end()) return 0;
  route_entry& at = is_exact ? *exact->second : **general;
  std::size_t count = 0;
  for (std::size_t i = 0; i < at.by_method.size(); ++i) {
    const auto verb = static_cast<method>(i);
    if ((methods & bit_of(verb)) == 0 || at.by_method[i].call == nullptr) continue;
    at.remove(verb);
    ++count;
  }
  if (at.methods != 0) return count;
  if (is_exact) {
    table_->exact.erase(exact);
  } else {
    table_->patterns.erase(general);
  }
  return count;
}

router::found router::find(method by, std::string_view path) const {
  found result;
  // Returns true when the route has the method; otherwise a less exact route may have it.
  const auto take = [&](const route_entry& entry) {
    result.methods |= entry.methods;
    result.handler = entry.of(by);
    return result.handler != nullptr;
  };
  const auto exact = table_->exact.find(path);
  if (exact != table_->exact.end() && take(*exact->second)) return result;
  if (!path.starts_with('/')) return result;
  for (const auto& entry : table_->patterns) {
    path_values values;
    if (!entry->matches(path, values) || !take(*entry)) continue;
    result.values = values;
    result.values.names = result.handler->names.data();
    return result;
  }
  return result;
}

void router::note_page(std::string path) {
  check_is_here();
  table_->page = std::move(path);
}
const std::string& router::page() const noexcept { return table_->page; }

const router::route* router::otherwise() const noexcept {
  return table_->otherwise.call == nullptr ? nullptr : &table_->otherwise;
}

response router::no_route(method asked, unsigned methods) {
  response answer(404);
  if (methods == 0) return answer;
  answer.status(asked == method::options ? 204 : asked == method::other ? 501 : 405);
  return std::move(answer).field("Allow", allowed(methods));
}

unsigned router::all_methods() const noexcept {
  unsigned all = bit_of(method::options);
  for (const auto& [path, entry] : table_->exact) all |= entry->methods;
  for (const auto& entry : table_->patterns) all |= entry->methods;
  return all;
}

std::string router::allowed(unsigned methods) {
  methods |= bit_of(method::options);
  std::string list;
  for (auto verb = method::get; verb != method::other;
       verb = static_cast<method>(static_cast<unsigned>(verb) + 1)) {
    if ((methods & bit_of(verb)) != 0)
      list += (list.empty() ? "" : ", ") + std::string(name_of(verb));
  }
  return list;
}

}  // namespace troupe::http
