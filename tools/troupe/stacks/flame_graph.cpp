#include "stacks/flame_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "text/short_text.hpp"

namespace troupe_tool {
namespace {

constexpr double width = 1200, margin = 10, row = 18, character = 6.6, narrowest = 0.2;

std::string escaped(std::string_view text) {
  std::string svg;
  for (const char letter : text) {
    switch (letter) {
      case '<':
        svg += "&lt;";
        break;
      case '>':
        svg += "&gt;";
        break;
      case '&':
        svg += "&amp;";
        break;
      case '"':
        svg += "&quot;";
        break;
      default:
        svg += letter >= ' ' && letter <= '~' ? letter : '?';
    }
  }
  return svg;
}

// As much of the name as fits.
std::string label(std::string_view name, double space) {
  const auto fits = static_cast<std::size_t>(std::max(0.0, space / character));
  constexpr std::size_t shortest = 4;
  if (name.size() <= fits) return escaped(name);
  if (fits < shortest) return "";
  return escaped(name.substr(0, fits - 2)) + "..";
}

std::size_t depth_of(const flame& root) {
  std::size_t deepest = 0;
  for (const auto& [name, above] : root.above) deepest = std::max(deepest, depth_of(above) + 1);
  return deepest;
}

// A warm colour that belongs to the name.
std::string colour_of(std::string_view name) {
  const std::size_t hash = std::hash<std::string_view>()(name);
  constexpr std::size_t reds = 50, greens = 110;
  return fmt::format("rgb({},{},{})", 205 + hash % reds, 110 + hash / reds % greens, 60);
}

class drawing {
 public:
  explicit drawing(const flame& root) : all_(root.ns), depth_(depth_of(root)) {}

  double height() const { return margin * 2 + row * static_cast<double>(depth_ + 2); }

  void add(const flame& below, double left, std::size_t level) {
    for (const auto& [name, above] : below.above) {
      const double wide = share(above) * (width - 2 * margin);
      if (wide >= narrowest) {
        add_box(name, above, left, wide, level);
        add(above, left, level + 1);
      }
      left += wide;
    }
  }
  std::string take() && { return std::move(text_); }

 private:
  double share(const flame& part) const {
    return all_ == 0 ? 0 : static_cast<double>(part.ns) / static_cast<double>(all_);
  }

  void add_box(const std::string& name, const flame& part, double left, double wide,
               std::size_t level) {
    const double top = height() - margin - row * static_cast<double>(level + 1);
    text_ += fmt::format(
        "<g><title>{} ({}, {:.1f} %)</title><rect x=\"{:.1f}\" y=\"{:.1f}\" "
        "width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" fill=\"{}\"/>",
        escaped(name), short_time(static_cast<double>(part.ns)), share(part) * 100, left, top, wide,
        row - 1, colour_of(name));
    const std::string shown = label(name, wide - 6);
    if (!shown.empty())
      text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", left + 3, top + 13, shown);
    text_ += "</g>\n";
  }

  std::uint64_t all_;
  std::size_t depth_;
  std::string text_;
};

}  // namespace

std::string flame_graph(const flame& root, std::string_view title) {
  drawing picture(root);
  picture.add(root, margin, 0);
  const double height = picture.height();
  return fmt::format(
             "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>text{{font:11px "
             "monospace;fill:#000}}</style>\n<rect width=\"100%\" height=\"100%\" "
             "fill=\"#fff\"/>\n<text x=\"{2:.0f}\" y=\"22\" style=\"font-size:14px\">{3}</text>\n",
             width, height, margin, escaped(title)) +
         std::move(picture).take() + "</svg>\n";
}

}  // namespace troupe_tool
