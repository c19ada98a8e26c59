// mandelbrot: draws the Mandelbrot set, or a part of it, into a PNG.
//
//     ./run examples/mandelbrot.cpp --out set.png --width 1200 --height 800
//     ./run examples/mandelbrot.cpp --out valley.png --x -0.7436 --y 0.1318 --span 0.004
//
// parallel_for computes the rows: some take a hundred times as long as others, and a worker that is
// done takes over rows that no worker has begun. Each pixel depends only on its place, so the image
// is the same with any number of workers.
//
// needs: cairo
#include <cairo.h>

#include <charconv>
#include <cmath>
#include <complex>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/troupe.hpp"

namespace {

struct view {
  int width = 900, height = 600;
  double x = -0.75, y = 0.0, span = 3.0;  // the middle of the picture, and its width
  int steps = 500;  // a point that has not escaped by then counts as one of the set
};

// How soon the orbit of the point escapes, from 0 to 1, without bands; 1 if it does not escape
// within the steps.
double leaves_after(std::complex<double> point, int steps) {
  constexpr double far = 256.0;
  double x = 0, y = 0;
  for (int step = 0; step < steps; ++step) {
    const double xx = x * x, yy = y * y;
    if (xx + yy > far * far)
      return (step + 1 - std::log2(0.5 * std::log2(xx + yy) / std::log2(far))) / steps;
    y = 2 * x * y + point.imag();
    x = xx - yy + point.real();
  }
  return 1.0;
}

std::uint32_t colour_of(double leaves) {
  if (leaves >= 1.0) return 0xFF000000;
  const double t = std::sqrt(std::max(leaves, 0.0));
  const auto part = [t](double phase) {
    return static_cast<std::uint32_t>(255 * (0.5 - 0.5 * std::cos(6.2832 * (t * 2 + phase))));
  };
  return 0xFF000000 | part(0.0) << 16 | part(0.12) << 8 | part(0.3);
}

std::vector<std::uint32_t> draw(const view& of) {
  const auto width = static_cast<std::size_t>(of.width);
  std::vector<std::uint32_t> pixels(width * static_cast<std::size_t>(of.height));
  const double pixel = of.span / of.width;
  const auto draw_row = [&](int row) {
    std::uint32_t* to = pixels.data() + width * static_cast<std::size_t>(row);
    for (int column = 0; column < of.width; ++column) {
      const std::complex<double> point(of.x + (column - 0.5 * of.width) * pixel,
                                       of.y + (row - 0.5 * of.height) * pixel);
      *to++ = colour_of(leaves_after(point, of.steps));
    }
  };
  troupe::parallel_for(0, of.height, draw_row, {.grain = 4}).get();
  return pixels;
}

bool write_png(const std::string& path, const view& of, std::vector<std::uint32_t>& pixels) {
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create_for_data(reinterpret_cast<unsigned char*>(pixels.data()),
                                          CAIRO_FORMAT_RGB24, of.width, of.height, 4 * of.width),
      cairo_surface_destroy);
  const cairo_status_t status = cairo_surface_write_to_png(surface.get(), path.c_str());
  if (status != CAIRO_STATUS_SUCCESS)
    std::cerr << "mandelbrot: " << path << ": " << cairo_status_to_string(status) << '\n';
  return status == CAIRO_STATUS_SUCCESS;
}

int usage() {
  std::cerr << "usage: mandelbrot [--out FILE.png] [--width PIXELS] [--height PIXELS] [--x REAL] "
               "[--y IMAGINARY] [--span WIDTH]\n"
               "                  [--steps N]\n";
  return 2;
}

template <class Number>
bool read(std::string_view text, Number& number, Number least, Number most) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= least &&
         number <= most;
}

}  // namespace

int main(int argc, char** argv) try {
  view of;
  std::string out = "mandelbrot.png";
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.size() % 2 != 0) return usage();
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string_view name = words[i], value = words[i + 1];
    bool known = false;
    if (name == "--out") known = !(out = value).empty();
    if (name == "--width") known = read(value, of.width, 1, 20'000);
    if (name == "--height") known = read(value, of.height, 1, 20'000);
    if (name == "--x") known = read(value, of.x, -10.0, 10.0);
    if (name == "--y") known = read(value, of.y, -10.0, 10.0);
    if (name == "--span") known = read(value, of.span, 1e-13, 100.0);
    if (name == "--steps") known = read(value, of.steps, 1, 1'000'000);
    if (!known) return usage();
  }
  const troupe::runtime rt;
  std::vector<std::uint32_t> pixels = draw(of);
  return write_png(out, of, pixels) ? 0 : 1;
} catch (const std::exception& failure) {
  std::cerr << "mandelbrot: " << failure.what() << '\n';
  return 1;
}
