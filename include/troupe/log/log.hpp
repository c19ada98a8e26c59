// log: lines with fields, as text or JSON, written by a thread of their own.
//
// A line names its time, level, logger, text and fields, and the actor and the trace in which it
// was logged. The caller makes the line and copies it into a buffer; another thread writes the
// buffer to standard error, to a file or to a callback. When the buffer is full, lines are dropped
// and counted: no caller waits. The buffer is also written at exit() and at a fatal signal.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "troupe/base/platform.hpp"

namespace troupe::log {

// The severity of a line; `off` as a limit lets no line through.
enum class level : std::uint8_t { trace, debug, info, warning, error, off };

class line;  // that is being made

// A name and a value: an integer, a bool, a floating-point number, a text, a duration, a
// std::exception, a std::exception_ptr, a std::error_code, or a callable that returns one of these,
// which is called only if the line is written. It refers to the name and to texts: it lives as long
// as the call that logs it.
class field {
 public:
  template <class Value>
  requires std::integral<Value> && std::is_signed_v<Value> field(std::string_view name, Value value)
  noexcept : name_(name), kind_(kind::integer) { value_.integer = value; }
  template <class Value>
  requires std::integral<Value> && std::is_unsigned_v<Value> &&
      (!std::same_as<Value, bool>)field(std::string_view name, Value value) noexcept
      : name_(name), kind_(kind::natural) {
    value_.natural = value;
  }
  field(std::string_view name, std::same_as<bool> auto value) noexcept
      : name_(name), kind_(kind::truth) {
    value_.truth = value;
  }
  field(std::string_view name, std::floating_point auto value) noexcept
      : name_(name), kind_(kind::real) {
    value_.real = static_cast<double>(value);
  }
  template <std::convertible_to<std::string_view> Text>
  field(std::string_view name, const Text& value) noexcept : name_(name), kind_(kind::text) {
    const std::string_view text = value;
    value_.text = {text.data(), text.size()};
  }
  template <class Rep, class Period>
  field(std::string_view name, std::chrono::duration<Rep, Period> value) noexcept
      : name_(name), kind_(kind::duration) {
    value_.real = std::chrono::duration<double>(value).count();
  }
  field(std::string_view name, const std::exception& value) noexcept
      : name_(name), kind_(kind::exception) {
    value_.object = &value;
  }
  field(std::string_view name, const std::exception_ptr& value) noexcept
      : name_(name), kind_(kind::exception_ptr) {
    value_.object = &value;
  }
  field(std::string_view name, const std::error_code& value) noexcept
      : name_(name), kind_(kind::error_code) {
    value_.object = &value;
  }
  template <class Make>
  requires std::invocable<const Make&> &&
      (!std::convertible_to<const Make&, std::string_view>)field(std::string_view name,
                                                                 const Make& make) noexcept
      : name_(name), kind_(kind::callable) {
    value_.callable = {&make, &add_made<Make>};
  }

 private:
  friend class line;
  enum class kind : std::uint8_t {
    integer,
    natural,
    truth,
    real,
    text,
    duration,
    exception,
    exception_ptr,
    error_code,
    callable
  };
  struct text_at {
    const char* data;
    std::size_t size;
  };
  struct made_by {
    const void* make;
    void (*add)(const void* make, std::string_view name, line& to);
  };
  template <class Make>
  static void add_made(const void* make, std::string_view name, line& to);

  std::string_view name_;
  kind kind_;
  union {
    std::int64_t integer;
    std::uint64_t natural;
    bool truth;
    double real;
    text_at text;
    const void* object;
    made_by callable;
  } value_;
};
using fields = std::initializer_list<field>;

// Writes a field into a line, in the form of the log.
void add_field(line& target, const field& added);
template <class Make>
void field::add_made(const void* make, std::string_view name, line& to) {
  const auto& value = (*static_cast<const Make*>(make))();
  add_field(to, field(name, value));
}

// The state of a logger; the library's own. Never freed.
struct logger_state {
  constexpr explicit logger_state(level from) noexcept : least(static_cast<std::uint8_t>(from)) {}
  std::atomic<std::uint8_t> least;
  bool has_own = false;  // a level of its own; guarded by the registry's mutex
  std::string_view name;
  logger_state* next = nullptr;
  // order: relaxed  a thread may see a change a little late
  TROUPE_INLINE bool is_on(level severity) const noexcept {
    return static_cast<std::uint8_t>(severity) >= least.load(std::memory_order_relaxed);
  }
};
extern logger_state root_state;
void write(const logger_state& by, level severity, std::string_view text, fields with) noexcept;

// A logger with a name, and with a level that can be changed by it. Loggers of one name share it.
// Cheap to copy. Thread: any. Throws std::bad_alloc.
//
// A line whose level is off costs one load and one branch. The fields' values are expressions of
// the call: the compiler may still compute them. Give a callable for an expensive value.
//
// Example:
//     const troupe::log::logger orders("orders");
//     const std::string who = "Ada";
//     orders.info("order taken", {{"id", 7}, {"who", who}});
//     orders.debug("stock", {{"items", [] { return 40 + 2; }}});  // off: not called
class logger {
 public:
  explicit logger(std::string_view name);

  bool is_on(level severity) const noexcept { return state_->is_on(severity); }
  void write(level severity, std::string_view text, fields with = {}) const noexcept {
    if (is_on(severity)) [[unlikely]]
      log::write(*state_, severity, text, with);
  }
  void trace(std::string_view text, fields with = {}) const noexcept {
    write(level::trace, text, with);
  }
  void debug(std::string_view text, fields with = {}) const noexcept {
    write(level::debug, text, with);
  }
  void info(std::string_view text, fields with = {}) const noexcept {
    write(level::info, text, with);
  }
  void warning(std::string_view text, fields with = {}) const noexcept {
    write(level::warning, text, with);
  }
  void error(std::string_view text, fields with = {}) const noexcept {
    write(level::error, text, with);
  }

 private:
  logger_state* state_;
};

// The same for the logger without a name.
inline bool is_on(level severity) noexcept { return root_state.is_on(severity); }
inline void trace(std::string_view text, fields with = {}) noexcept {
  if (is_on(level::trace)) [[unlikely]]
    write(root_state, level::trace, text, with);
}
inline void debug(std::string_view text, fields with = {}) noexcept {
  if (is_on(level::debug)) [[unlikely]]
    write(root_state, level::debug, text, with);
}
inline void info(std::string_view text, fields with = {}) noexcept {
  if (is_on(level::info)) write(root_state, level::info, text, with);
}
inline void warning(std::string_view text, fields with = {}) noexcept {
  if (is_on(level::warning)) write(root_state, level::warning, text, with);
}
inline void error(std::string_view text, fields with = {}) noexcept {
  if (is_on(level::error)) write(root_state, level::error, text, with);
}

// Sets the level of all loggers that have none of their own, or of the loggers of a name. Default:
// info. A name that no logger has yet is kept for it; throws std::bad_alloc then.
// Thread: any.
void set_level(level least);
void set_level(std::string_view name, level least);
// Returns the level of that name; nothing for another text.
bool level_of(std::string_view text, level& to) noexcept;
std::string_view name_of(level severity) noexcept;
struct named_level {
  std::string name;  // empty: the logger without a name
  level least;
};
std::vector<named_level> levels();

// Lines for people, or a JSON object a line.
enum class form : std::uint8_t { text, json };

// Where lines go, and in which form.
struct options {
  form as = form::text;
  // Lines are added to the end of this file; empty (default): standard error.
  std::string file{};
  // Instead of both: gets each line, without its line break, on the thread that writes. Lines that
  // it logs are written later. An exception from it drops the line.
  std::function<void(std::string_view line)> callback{};
};
// From now on lines are written so. Writes the buffer first, for at most 2 s if its reader does not
// read. If the file cannot be opened, lines stay in the previous output until it can be: that is
// reported on standard error, and tried again. Thread: any that is not the callback's.
void configure(options chosen);
// Opens the file anew before the next line is written, after it was renamed (logrotate). If it
// cannot be opened, the old one stays until it can be, as with configure(). Thread: any; allowed in
// a signal handler.
void reopen() noexcept;
// Returns once all lines so far are written, or after 2 s if their reader does not read. Blocks.
// Thread: any that is not the callback's.
void flush() noexcept;

// Lines that were logged, and of these the lines that were dropped because the buffer (1 MiB) was
// full, or that could not be written.
struct counts {
  std::uint64_t lines = 0, dropped = 0;
};
counts count() noexcept;

}  // namespace troupe::log
