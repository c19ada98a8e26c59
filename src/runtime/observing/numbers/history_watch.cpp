#include "runtime/observing/numbers/history_watch.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/threads/thread_clock.hpp"
#include "observe/numbers/tables.hpp"

namespace troupe::observing {
namespace {

constexpr std::int64_t period_ns = 1'000'000'000;
// A look may use a 50th of a processor, as those for warnings.
constexpr std::int64_t share_of_long_samples = 50;

// Four digits are enough for a line on a screen.
double rounded(float value) noexcept {
  std::array<char, 32> digits;
  constexpr int kept_digits = 4;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::general, kept_digits);
  double read = 0;
  std::from_chars(digits.data(), end.ptr, read);
  return read;
}

void write_labels(json_text& text, std::span<const std::string> labels) {
  text.key("labels").open('[');
  for (const std::string& label : labels) text.value(label);
  text.close(']');
}

// Opens and closes the objects of tables and rows, whose series come together.
class table_writer {
 public:
  explicit table_writer(json_text& text) : text_(text) { text_.key("tables").open('['); }
  table_writer(const table_writer&) = delete;
  table_writer& operator=(const table_writer&) = delete;
  ~table_writer() {
    close_table();
    text_.close(']');
  }

  void add(const observe::history::row_labels& row, std::string_view number,
           const std::vector<float>& values) {
    if (!has_row_ || row.prefix.data() != row_.prefix.data()) {
      close_table();
      text_.open('{').member("prefix", row.prefix);
      write_labels(text_, row.label_names);
      text_.key("rows").open('[');
      open_row(row);
    } else if (row.labels.data() != row_.labels.data()) {
      close_row();
      open_row(row);
    }
    text_.key(number).open('[');
    for (const float value : values) text_.value(rounded(value));
    text_.close(']');
  }

 private:
  void open_row(const observe::history::row_labels& row) {
    row_ = row;
    has_row_ = true;
    write_labels(text_.open('{'), row.labels);
    text_.key("series").open('{');
  }
  void close_row() { text_.close('}').close('}'); }
  void close_table() {
    if (!has_row_) return;
    close_row();
    text_.close(']').close('}');
  }

  json_text& text_;
  observe::history::row_labels row_{};
  bool has_row_ = false;
};

}  // namespace

history_watch::history_watch(std::function<void(observe::number_tables&)> collects)
    : collects_(std::move(collects)), next_ns_(base::now_ns()) {}

std::int64_t history_watch::look(std::int64_t now_ns) noexcept try {
  if (now_ns < next_ns_) return next_ns_;
  const std::int64_t used_before = base::own_cpu_ns();
  observe::number_tables all;
  collects_(all);
  kept_.add(all, now_ns);
  const std::int64_t used = base::own_cpu_ns() - used_before;
  // In step with the clock, unless a look was missed.
  next_ns_ += period_ns;
  if (next_ns_ <= now_ns) next_ns_ = now_ns + period_ns;
  next_ns_ = std::max(next_ns_, now_ns + share_of_long_samples * used);
  return next_ns_;
} catch (const std::bad_alloc&) {  // the next look may find memory
  return next_ns_ = now_ns + period_ns;
}

void history_watch::write(json_text& text, std::int64_t ago_ns, std::size_t count,
                          std::string_view prefix) const {
  const std::int64_t now_ns = base::now_ns();
  const observe::history::window found = kept_.find(now_ns - ago_ns, count);
  text.open('{').member("now_ns", now_ns).member("left_out", kept_.left_out());
  text.member("step_s", found.is_of_tens ? 10 : 1).key("times_ns").open('[');
  for (const std::int64_t time : found.times_ns) text.value(time);
  text.close(']');
  {
    table_writer tables(text);
    kept_.for_each(found, prefix,
                   [&](const observe::history::row_labels& row, std::string_view number,
                       const std::vector<float>& values) { tables.add(row, number, values); });
  }
  text.close('}');
}

}  // namespace troupe::observing
