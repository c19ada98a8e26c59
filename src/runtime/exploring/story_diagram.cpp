#include "runtime/exploring/story_diagram.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {
namespace {

constexpr std::size_t none = told_message::none;

std::string plain(std::string_view text) {
  std::string escaped(text);
  for (char& letter : escaped) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return escaped;
}

std::string title_of(const std::string& failure) {
  return plain(std::string_view(failure).substr(0, failure.find('\n')));
}

// Without its class, which the column names.
std::string short_method(const told_story& told, const told_message& message) {
  const std::string& actor = told.actors[message.receiver];
  const std::string prefix = actor.substr(0, actor.rfind(" #")) + "::";
  return plain(message.method.starts_with(prefix) ? message.method.substr(prefix.size())
                                                  : message.method);
}

// The file without its folder, and the line.
std::string short_place(const std::string& place) {
  return plain(std::string_view(place).substr(place.rfind('/') + 1));
}

std::string note_of(const told_message& message) {
  std::string note;
  const auto add = [&note](const std::string& text) { note += (note.empty() ? "" : ", ") + text; };
  if (message.continues) add(message.by.empty() ? "continued" : "continued by " + message.by);
  if (message.is_held) add("held");
  if (message.turn == 0) add("not handled");
  if (!message.waits_for.empty()) add("waits for " + plain(message.waits_for));
  if (message.fails) add("fails");
  return note;
}

// The columns: the program, if it sends a message, and the actors.
class columns {
 public:
  explicit columns(const told_story& told) {
    has_program_ = std::ranges::any_of(told.messages, [](const told_message& message) {
      return message.sender == none && !message.continues;
    });
    if (has_program_) names_.push_back("the program");
    for (const std::string& actor : told.actors) names_.push_back(plain(actor));
  }
  const std::vector<std::string>& names() const noexcept { return names_; }
  std::size_t receiver(const told_message& message) const noexcept {
    return message.receiver + (has_program_ ? 1 : 0);
  }
  // None if nothing is known to have sent it.
  std::size_t sender(const told_message& message) const noexcept {
    if (message.sender != none) return message.sender + (has_program_ ? 1 : 0);
    return message.continues ? none : 0;
  }

 private:
  bool has_program_ = false;
  std::vector<std::string> names_;
};

// ---- SVG ----

constexpr int left = 90, top = 90, column_width = 210, row_height = 40, box_width = 10,
              box_height = 22, line_height = 16;

std::string escaped(std::string_view text) {
  std::string diagram;
  for (const char letter : text) {
    switch (letter) {
      case '<':
        diagram += "&lt;";
        break;
      case '>':
        diagram += "&gt;";
        break;
      case '&':
        diagram += "&amp;";
        break;
      case '"':
        diagram += "&quot;";
        break;
      default:
        diagram += letter;
    }
  }
  return diagram;
}

class svg_drawing {
 public:
  svg_drawing(const told_story& told, const std::string& failure)
      : told_(told), columns_(told), title_(title_of(failure)) {}

  std::string draw() && {
    begin();
    for (std::size_t i = 0; i < told_.messages.size(); ++i) add_arrow(i);
    for (std::size_t i = 0; i < told_.messages.size(); ++i) add_box(i);
    for (std::size_t i = 0; i < told_.faults.size(); ++i) add_fault(i);
    return std::move(text_) + "</svg>\n";
  }

 private:
  static int x_of(std::size_t column) {
    return left + box_width + column_width * static_cast<int>(column);
  }
  static int y_of(std::size_t row) { return top + row_height * static_cast<int>(row); }

  void add(std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) text_ += part;
  }
  static std::string number(int value) { return std::to_string(value); }

  void begin() {
    const auto count = static_cast<int>(columns_.names().size());
    const int titled = 20 + 9 * static_cast<int>(title_.size());
    const std::string width = number(std::max(left + column_width * count + 20, titled));
    const int bottom = y_of(told_.messages.size());
    const std::string height =
        number(bottom + 20 + line_height * static_cast<int>(told_.faults.size()));
    add({"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width,
         "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height, "\">\n",
         "<style>text{font:11px monospace;fill:#000;paint-order:stroke;stroke:#fff;"
         "stroke-width:3px}.place{fill:#666}.held{fill:#b45309}.fails{fill:#b91c1c}</style>\n",
         "<defs><marker id=\"head\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"3\" "
         "orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\" fill=\"#374151\"/></marker></defs>\n",
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
         "<text x=\"10\" y=\"22\" style=\"font-size:14px\">", escaped(title_), "</text>\n"});
    if (told_.left_out != 0)
      add({"<text x=\"10\" y=\"40\" class=\"place\">", std::to_string(told_.left_out),
           " earlier handlers are left out</text>\n"});
    for (std::size_t i = 0; i < columns_.names().size(); ++i) {
      const std::string x = number(x_of(i));
      add({"<text x=\"", x, "\" y=\"", number(top - 28), "\" text-anchor=\"middle\" ",
           "style=\"font-weight:bold\">", escaped(columns_.names()[i]), "</text>\n", "<line x1=\"",
           x, "\" y1=\"", number(top - 20), "\" x2=\"", x, "\" y2=\"", number(bottom),
           "\" stroke=\"#9ca3af\"/>\n"});
    }
  }

  void add_arrow(std::size_t row) {
    const told_message& message = told_.messages[row];
    const std::size_t sender = columns_.sender(message), receiver = columns_.receiver(message);
    if (sender == none) return;
    const int to_y = y_of(row), from_y = message.cause == none ? to_y : y_of(message.cause);
    const int from_x = x_of(sender), to_x = x_of(receiver);
    const int aside = from_x < to_x ? -box_width / 2 : box_width / 2;
    if (sender == receiver) {
      add({"<path fill=\"none\" d=\"M", number(from_x - 5), ",", number(from_y), " C",
           number(from_x - 40), ",", number(from_y), " ", number(from_x - 40), ",", number(to_y),
           " ", number(from_x - 5), ",", number(to_y), "\""});
    } else {
      add({"<line x1=\"", number(from_x - aside), "\" y1=\"", number(from_y), "\" x2=\"",
           number(to_x + aside), "\" y2=\"", number(to_y), "\""});
    }
    add({" stroke=\"", message.is_held ? "#b45309" : "#374151", "\"",
         message.is_held || message.turn == 0 ? " stroke-dasharray=\"5 3\"" : "",
         " marker-end=\"url(#head)\"/>\n"});
  }

  void add_box(std::size_t row) {
    const told_message& message = told_.messages[row];
    const int x = x_of(columns_.receiver(message)), y = y_of(row);
    std::string line = text_of({told_.actors, {message}, 0});
    line = plain(line.substr(0, line.find('\n')));
    add({"<g><title>", escaped(line.substr(std::min(line.find_first_not_of(' '), line.size()))),
         "</title>"});
    if (message.turn != 0) {
      add({"<text x=\"10\" y=\"", number(y + 4), "\" class=\"place\">turn ",
           std::to_string(message.turn), "</text>"});
    }
    const std::string_view fill = message.fails       ? "#ef4444"
                                  : message.turn == 0 ? "#fff"
                                  : message.is_held   ? "#f59e0b"
                                                      : "#bfdbfe";
    add({"<rect x=\"", number(x - box_width / 2), "\" y=\"", number(y - box_height / 2),
         "\" width=\"", number(box_width), "\" height=\"", number(box_height), "\" fill=\"", fill,
         "\" stroke=\"#374151\"/>"});
    add_labels(message, x + box_width + 4, y);
    add({"</g>\n"});
  }

  void add_labels(const told_message& message, int x, int y) {
    const std::string note = note_of(message);
    add({"<text x=\"", number(x), "\" y=\"", number(y - 1), "\">",
         escaped(short_method(told_, message)), "</text>"});
    add({"<text x=\"", number(x), "\" y=\"", number(y + 11), "\" class=\"",
         message.fails     ? "fails"
         : message.is_held ? "held"
                           : "place",
         "\">", escaped(note), note.empty() || message.place.empty() ? "" : ", ",
         escaped(short_place(message.place)), "</text>"});
  }

  // Below the handlers.
  void add_fault(std::size_t nth) {
    const int y = y_of(told_.messages.size()) + line_height * static_cast<int>(nth + 1);
    add({"<text x=\"10\" y=\"", number(y), "\" class=\"fails\">fault ",
         escaped(plain(text_of(told_.faults[nth]))), "</text>\n"});
  }

  const told_story& told_;
  const columns columns_;
  const std::string title_;
  std::string text_;
};

// ---- ASCII ----

class ascii_drawing {
 public:
  explicit ascii_drawing(const told_story& told) : told_(told), columns_(told) {}

  std::string draw(const std::string& title) && {
    std::string text = title + '\n';
    if (told_.left_out != 0)
      text += '(' + std::to_string(told_.left_out) + " earlier handlers are left out)\n";
    std::string names;
    for (std::size_t i = 0; i < columns_.names().size(); ++i) {
      const std::string name = columns_.names()[i].substr(0, width - 2);
      put(names, place_of(i) - std::min(name.size() / 2, place_of(i)), name);
    }
    text += '\n' + names + '\n' + bars() + '\n';
    for (const told_message& message : told_.messages) text += row_of(message) + '\n';
    text += bars() + '\n';
    for (const told_fault& fault : told_.faults) text += "fault " + plain(text_of(fault)) + '\n';
    return text;
  }

 private:
  static constexpr std::size_t gutter = 16, width = 26;
  static std::size_t place_of(std::size_t column) { return gutter + column * width; }

  static void put(std::string& line, std::size_t at, std::string_view text) {
    if (line.size() < at + text.size()) line.resize(at + text.size(), ' ');
    line.replace(at, text.size(), text);
  }

  std::string bars() const {
    std::string line;
    for (std::size_t i = 0; i < columns_.names().size(); ++i) put(line, place_of(i), "|");
    return line;
  }

  std::string row_of(const told_message& message) const {
    std::string line = bars();
    if (message.turn != 0) put(line, 0, "turn " + std::to_string(message.turn));
    const std::size_t sender = columns_.sender(message), receiver = columns_.receiver(message);
    std::string name = ' ' + short_method(told_, message) + ' ';
    put(line, place_of(receiver), message.turn == 0 ? "o" : message.fails ? "X" : "*");
    if (sender == none || sender == receiver) {
      put(line, place_of(receiver) + 1, name.substr(0, width - 1));
    } else {
      put_arrow(line, sender, receiver, std::move(name));
    }
    std::string note = note_of(message);
    if (!message.place.empty()) note += (note.empty() ? "" : ", ") + short_place(message.place);
    return note.empty() ? line : line + "  " + note;
  }

  static void put_arrow(std::string& line, std::size_t sender, std::size_t receiver,
                        std::string name) {
    const std::size_t from = place_of(std::min(sender, receiver)) + 1;
    const std::size_t space = place_of(std::max(sender, receiver)) - from;
    constexpr std::size_t shaft = 4;  // of an arrow at least
    if (name.size() > space - shaft) name = name.substr(0, space - shaft - 3) + ".. ";
    const std::size_t before = (space - name.size()) / 2, behind = space - name.size() - before;
    std::string arrow = std::string(before, '-') + name + std::string(behind, '-');
    (sender < receiver ? arrow.back() : arrow.front()) = sender < receiver ? '>' : '<';
    put(line, from, arrow);
  }

  const told_story& told_;
  const columns columns_;
};

}  // namespace

std::string svg_diagram(const told_story& told, const std::string& failure) {
  return svg_drawing(told, failure).draw();
}

std::string ascii_diagram(const told_story& told, const std::string& failure) {
  return ascii_drawing(told).draw(title_of(failure));
}

}  // namespace troupe
