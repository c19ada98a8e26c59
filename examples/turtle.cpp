// turtle: draws the Koch, Hilbert and dragon curves into a PNG file, and into a window if it can.
// needs: cairo sdl2
//
//     ./run examples/turtle.cpp all --out curves.png
//
// For each curve a Walker on the pool computes the steps and sends them by the block. The Drawing,
// on the main thread as windows demand, draws each block when it comes, and checks at the end that
// it got every step. A Walker is at most two blocks ahead of the Drawing, however deep the curve
// is.
#include <SDL.h>
#include <cairo.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <numbers>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/troupe.hpp"

using Place = std::complex<double>;  // in the plane, in lengths of a step

constexpr std::uint64_t steps_per_turn = 10'000, steps_per_block = 1'000, shades = 500;
constexpr int blocks_ahead = 2;
constexpr int panel_width = 640, panel_height = 720, margin = 50, caption_height = 90;
constexpr auto frame_every = std::chrono::milliseconds(30);

// A curve is a rule that gives the heading of step k without the steps before it.
struct Curve {
  std::string_view name, formula;
  int depth_default, depth_max;
  // How many headings make a full turn. Heading 0 is to the right, and 1 is the next one
  // counter-clockwise.
  int directions;
  std::array<double, 3> hue;  // where in their range red, green and blue begin
  std::uint64_t (*steps)(int depth);
  int (*heading)(int depth, std::uint64_t k);
  Place (*end)(int depth);  // where the walk ends, found without walking
};

std::uint64_t power_of_four(int depth) { return std::uint64_t{1} << (2 * depth); }

// Each piece of a side becomes four pieces: straight on, turned left, turned right, straight on. So
// the digits of k to base 4 say how often step k was turned. The next side begins 120 degrees to
// the right.
int koch_heading(int depth, std::uint64_t k) {
  int heading = -2 * static_cast<int>(k / power_of_four(depth));
  for (int digit = 0; digit < depth; ++digit, k /= 4)
    heading += k % 4 == 1 ? 1 : k % 4 == 2 ? -1 : 0;
  return heading;
}

// The k-th cell that Hilbert's curve visits: the first and the last quadrant are mirror images of
// it.
Place hilbert_cell(int depth, std::uint64_t k) {
  double x = 0, y = 0;
  for (double size = 1; depth > 0; --depth, size *= 2, k /= 4) {
    const auto quadrant = k % 4;
    if (quadrant == 3) x = size - 1 - x, y = size - 1 - y;
    if (quadrant == 0 || quadrant == 3) std::swap(x, y);
    if (quadrant >= 2) x += size;
    if (quadrant == 1 || quadrant == 2) y += size;
  }
  return {x, y};
}

int hilbert_heading(int depth, std::uint64_t k) {
  const Place step = hilbert_cell(depth, k + 1) - hilbert_cell(depth, k);
  return step.real() > 0 ? 0 : step.imag() > 0 ? 1 : step.real() < 0 ? 2 : 3;
}

// A strip of paper is folded in the middle again and again: the set bits of k's Gray code count the
// turns so far.
int dragon_heading(int, std::uint64_t k) { return std::popcount(k ^ (k >> 1)); }

// clang-format off
const std::array<Curve, 3> curves{{
    {.name = "koch", .formula = "3 * 4^n", .depth_default = 5, .depth_max = 10,
     .directions = 6, .hue = {0.45, 0.6, 0.75},
     .steps = [](int n) { return 3 * power_of_four(n); }, .heading = koch_heading,
     .end = [](int) { return Place(0, 0); }},
    {.name = "hilbert", .formula = "4^n - 1", .depth_default = 6, .depth_max = 10,
     .directions = 4, .hue = {0.0, 0.33, 0.67},
     .steps = [](int n) { return power_of_four(n) - 1; }, .heading = hilbert_heading,
     .end = [](int n) { return Place(std::ldexp(1, n) - 1, 0); }},
    {.name = "dragon", .formula = "2^n", .depth_default = 12, .depth_max = 20,
     .directions = 4, .hue = {0.0, 0.15, 0.45},
     .steps = [](int n) { return std::uint64_t{1} << n; }, .heading = dragon_heading,
     // A fold turns the line from the start to the end by 45 degrees, and makes it longer.
     .end = [](int n) { return std::pow(Place(1, 1), n); }},
}};
// clang-format on

// What is drawn in one panel.
struct Job {
  const Curve& curve;
  int depth;
  std::uint64_t steps() const { return curve.steps(depth); }
  int heading(std::uint64_t k) const { return curve.heading(depth, k); }
};

Place step(const Curve& curve, int heading) {
  return std::polar(1.0, heading * 2 * std::numbers::pi / curve.directions);
}

// The rectangle that a curve takes.
struct Box {
  Place low, high;
  void include(Place place) {
    low = {std::min(low.real(), place.real()), std::min(low.imag(), place.imag())};
    high = {std::max(high.real(), place.real()), std::max(high.imag(), place.imag())};
  }
};

// Shows an image until the user closes it.
class Window {
 public:
  // Throws std::runtime_error with the reason if there can be no window.
  Window(int width, int height) {
    constexpr int anywhere = SDL_WINDOWPOS_CENTERED;
    // Otherwise SDL would draw to an invisible window, which the user could never close.
    SDL_SetHint(SDL_HINT_VIDEODRIVER, "x11,wayland");
    if (SDL_Init(SDL_INIT_VIDEO) == 0) {
      window_ = SDL_CreateWindow("turtle", anywhere, anywhere, width, height, SDL_WINDOW_RESIZABLE);
    }
    if (window_ != nullptr) return;
    const std::string reason = SDL_GetError();
    SDL_Quit();
    throw std::runtime_error(reason);
  }
  Window(const Window&) = delete;
  ~Window() {
    SDL_DestroyWindow(window_);
    SDL_Quit();
  }

  void show(cairo_surface_t* image) {
    cairo_surface_flush(image);
    SDL_Surface* pixels = SDL_CreateRGBSurfaceWithFormatFrom(
        cairo_image_surface_get_data(image), cairo_image_surface_get_width(image),
        cairo_image_surface_get_height(image), 32, cairo_image_surface_get_stride(image),
        SDL_PIXELFORMAT_RGB888);
    SDL_BlitScaled(pixels, nullptr, SDL_GetWindowSurface(window_), nullptr);
    SDL_FreeSurface(pixels);
    SDL_UpdateWindowSurface(window_);
  }

  // Returns true once a key was pressed, the window was closed or the program was interrupted.
  static bool dismissed(int wait_ms) {
    SDL_Event event;
    for (int got = SDL_WaitEventTimeout(&event, wait_ms); got != 0; got = SDL_PollEvent(&event)) {
      if (event.type == SDL_KEYDOWN || event.type == SDL_QUIT) return true;
    }
    return false;
  }

 private:
  SDL_Window* window_ = nullptr;
};

// Owns the image and the window, and so lives on the main thread. Each job has a panel.
class Drawing {
 public:
  Drawing(std::vector<Job> jobs, std::string file, bool with_window)
      : file_(std::move(file)), panels_(jobs.begin(), jobs.end()), unfinished_(jobs.size()) {
    const int width = panel_width * static_cast<int>(jobs.size());
    image_.reset(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, panel_height));
    pen_.reset(cairo_create(image_.get()));
    cairo_set_source_rgb(pen_.get(), 0.055, 0.067, 0.1);
    cairo_paint(pen_.get());
    cairo_set_line_cap(pen_.get(), CAIRO_LINE_CAP_ROUND);
    if (!with_window) return;
    try {
      window_.emplace(width, panel_height);
    } catch (const std::runtime_error& reason) {
      std::cerr << "turtle: no window (" << reason.what() << "): drawing to the file only\n";
    }
  }

  // Fits the curve into its panel. Comes before the first step.
  void begin(std::size_t number, Box box) {
    Panel& panel = panels_[number];
    const Place size = box.high - box.low, middle = (box.low + box.high) / 2.0;
    const double room_x = panel_width - 2 * margin, room_y = panel_height - margin - caption_height;
    panel.scale =
        std::min(room_x / std::max(size.real(), 1.0), room_y / std::max(size.imag(), 1.0));
    panel.origin = left_of(number) + Place(panel_width / 2.0, margin + room_y / 2) -
                   panel.scale * std::conj(middle);
  }

  // Draws the next steps, given by their headings. Calls `drawn` when it is ready for more.
  void steps(std::size_t number, std::vector<std::int8_t> headings, std::function<void()> drawn) {
    Panel& panel = panels_[number];
    const std::uint64_t steps_per_shade = panel.job.steps() / shades + 1;
    cairo_set_line_width(pen_.get(), std::clamp(panel.scale * 0.35, 1.5, 6.0));
    for (auto next = headings.begin(); next != headings.end();) {
      use_colour(panel);
      cairo_move_to(pen_.get(), panel.x(), panel.y());
      for (std::uint64_t n = 0; n < steps_per_shade && next != headings.end();
           ++n, ++next, ++panel.steps) {
        panel.at += step(panel.job.curve, *next);
        cairo_line_to(pen_.get(), panel.x(), panel.y());
      }
      cairo_stroke(pen_.get());
    }
    if (const auto now = std::chrono::steady_clock::now(); now >= next_frame_) {
      show();
      next_frame_ = now + frame_every;
    }
    drawn();
  }

  // Comes after the last step.
  void end(std::size_t number) {
    const Panel& panel = panels_[number];
    const auto& [curve, depth] = panel.job;
    const std::string counted = std::to_string(panel.steps) + " steps";
    if (panel.steps != panel.job.steps() || std::abs(panel.at - curve.end(depth)) > 0.01) {
      throw std::runtime_error(std::string(curve.name) + ": " + counted + " came, not " +
                               std::to_string(panel.job.steps()) + ", or they lead astray");
    }
    std::cout << curve.name << ": depth " << depth << ", " << counted << " = " << curve.formula
              << '\n';
    write(number, std::string(curve.name) + ", depth " + std::to_string(depth) + ": " + counted);
    if (--unfinished_ == 0) save();
  }

 private:
  struct Panel {
    Job job;
    double scale = 1;
    Place origin{}, at{};  // in the picture y points down
    std::uint64_t steps = 0;
    Panel(Job drawn) : job(drawn) {}
    double x() const { return origin.real() + scale * at.real(); }
    double y() const { return origin.imag() - scale * at.imag(); }
  };

  static Place left_of(std::size_t number) { return static_cast<double>(number) * panel_width; }

  // Moves smoothly round a circle of colours.
  void use_colour(const Panel& panel) {
    const double way = static_cast<double>(panel.steps) / static_cast<double>(panel.job.steps());
    const auto part = [&](double from) {
      return 0.68 + 0.32 * std::cos(2 * std::numbers::pi * (way + from));
    };
    const auto& [red, green, blue] = panel.job.curve.hue;
    cairo_set_source_rgb(pen_.get(), part(red), part(green), part(blue));
  }

  void write(std::size_t number, const std::string& caption) {
    cairo_select_font_face(pen_.get(), "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(pen_.get(), 22);
    cairo_text_extents_t extents;
    cairo_text_extents(pen_.get(), caption.c_str(), &extents);
    cairo_set_source_rgb(pen_.get(), 0.75, 0.78, 0.85);
    const double left = left_of(number).real() + (panel_width - extents.width) / 2;
    cairo_move_to(pen_.get(), left, panel_height - caption_height / 2.0 + 10);
    cairo_show_text(pen_.get(), caption.c_str());
  }

  void save() {
    const auto written = cairo_surface_write_to_png(image_.get(), file_.c_str());
    if (written != CAIRO_STATUS_SUCCESS) {
      throw std::runtime_error("cannot write " + file_ + ": " + cairo_status_to_string(written));
    }
    std::cout << file_ << ": " << cairo_image_surface_get_width(image_.get()) << " x "
              << panel_height << std::endl;
    show();
    linger();
  }

  // Keeps the program running while there is a window to look at, by short waits.
  void linger() {
    if (window_ && window_->dismissed(100)) window_.reset();
    if (window_) troupe::self(this).tell<&Drawing::linger>();
  }

  void show() {
    if (window_ && window_->dismissed(0)) window_.reset();
    if (window_) window_->show(image_.get());
  }

  std::string file_;
  std::vector<Panel> panels_;
  std::size_t unfinished_;
  std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> image_{nullptr,
                                                                            &cairo_surface_destroy};
  std::unique_ptr<cairo_t, decltype(&cairo_destroy)> pen_{nullptr, &cairo_destroy};
  std::optional<Window> window_;
  std::chrono::steady_clock::time_point next_frame_{};
};

// Walks a curve twice: first to find its size, and then to send its steps.
class Walker {
 public:
  Walker(Job job, std::size_t number, troupe::ref<Drawing> drawing)
      : job_(job), number_(number), drawing_(std::move(drawing)) {}

  void measure() {
    for (std::uint64_t n = 0; n < steps_per_turn && walked_ < job_.steps(); ++n, ++walked_) {
      box_.include(at_ += step(job_.curve, job_.heading(walked_)));
    }
    if (walked_ < job_.steps()) return troupe::self(this).tell<&Walker::measure>();
    drawing_.tell<&Drawing::begin>(number_, box_);
    walked_ = 0;
    for (int i = 0; i < blocks_ahead; ++i) troupe::self(this).tell<&Walker::send>();
  }

 private:
  void send() {
    if (ended_) return;
    std::vector<std::int8_t> headings;
    for (; headings.size() < steps_per_block && walked_ < job_.steps(); ++walked_) {
      headings.push_back(static_cast<std::int8_t>(job_.heading(walked_)));
    }
    drawing_.tell<&Drawing::steps>(number_, std::move(headings),
                                   troupe::self(this).bind<&Walker::send>());
    ended_ = walked_ == job_.steps();
    if (ended_) drawing_.tell<&Drawing::end>(number_);
  }

  Job job_;
  std::size_t number_;  // of its panel
  troupe::ref<Drawing> drawing_;
  std::uint64_t walked_ = 0;
  bool ended_ = false;
  Place at_;
  Box box_;
};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

constexpr const char* usage =
    "usage: turtle [koch|hilbert|dragon|all] [--depth N] [--out FILE.png] [--window | "
    "--no-window]\n"
    "  --depth N    how often a curve is refined: koch 0 to 10 (default 5), hilbert 0 to 10 (6), "
    "dragon "
    "0 to 20 (12)\n"
    "  --out FILE   where to write the picture (default turtle.png)\n"
    "  --window     show it too, until a key is pressed; the default where there is a display\n"
    "Ends with 0; with 1 if a step is missing or the picture cannot be written.\n";

struct Options {
  std::vector<Job> jobs{};
  std::string file = "turtle.png";
  bool window = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
};

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int read_depth(std::string_view text) {
  int depth = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, depth);
  if (bad == std::errc{} && rest == end && depth >= 0) return depth;
  throw WrongUse("'" + std::string(text) + "' is no depth");
}

Options parse(int argc, char** argv) {
  Options chosen;
  std::string name = "all";
  int depth = -1;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_name = !word.starts_with('-'),
               is_window = word == "--window" || word == "--no-window";
    if (!given.insert(is_name ? "curve" : is_window ? "window" : word).second) {
      throw WrongUse("'" + word + "' is one too many");
    }
    if (is_name) {
      name = word;
    } else if (is_window) {
      chosen.window = word == "--window";
    } else if (word != "--out" && word != "--depth") {
      throw WrongUse("there is no option '" + word + "'");
    } else if (++i == argc) {
      throw WrongUse(word + " wants a value");
    } else if (word == "--out") {
      chosen.file = argv[i];
    } else {
      depth = read_depth(argv[i]);
    }
  }
  for (const Curve& curve : curves) {
    if (name != "all" && name != curve.name) continue;
    if (depth > curve.depth_max) {
      throw WrongUse("the depth of " + std::string(curve.name) + " is at most " +
                     std::to_string(curve.depth_max));
    }
    chosen.jobs.push_back({curve, depth < 0 ? curve.depth_default : depth});
  }
  if (chosen.jobs.empty()) throw WrongUse("there is no curve '" + name + "'");
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  const Options options = parse(argc, argv);
  troupe::runtime rt;
  const auto drawing =
      rt.spawn<Drawing>(troupe::on_main(), options.jobs, options.file, options.window);
  for (std::size_t i = 0; i < options.jobs.size(); ++i) {
    rt.spawn<Walker>(options.jobs[i], i, drawing).tell<&Walker::measure>();
  }
  rt.run();  // returns when all is drawn and the window is closed
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "turtle: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "turtle: " << failure.what() << '\n';
  return 1;
}
