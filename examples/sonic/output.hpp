// What sonic writes: the piece as a WAV file, and a picture of it.
#pragma once

#include <cairo.h>
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "signal.hpp"

// A file cannot be written.
struct BadOutput : std::runtime_error {
  BadOutput(const std::string& file, const std::string& why)
      : std::runtime_error("cannot write " + file + ": " + why + "; name another file") {}
};

// Checks before the work begins whether the file can be opened. Leaves an existing file unchanged,
// and also a link to a file that does not exist yet.
inline void check_writable(const std::string& file) {
  const bool is_new = !std::filesystem::exists(file);
  if (!std::ofstream(file, std::ios::app)) throw BadOutput(file, "it cannot be opened");
  if (is_new) std::filesystem::remove(std::filesystem::canonical(file));
}

// Writes stereo with 24 bits a sample.
inline void write_wav(const Signal& piece, const std::string& file) {
  constexpr std::size_t frames_per_write = 65'536;
  SF_INFO info{};
  info.samplerate = frames_per_s;
  info.channels = 2;
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_24;
  std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> out(sf_open(file.c_str(), SFM_WRITE, &info),
                                                  &sf_close);
  if (out == nullptr) throw BadOutput(file, sf_strerror(nullptr));
  sf_command(out.get(), SFC_SET_CLIPPING, nullptr, SF_TRUE);
  std::vector<float> both;
  for (std::size_t at = 0; at < piece.frames(); at += frames_per_write) {
    const std::size_t frames = std::min(frames_per_write, piece.frames() - at);
    both.clear();
    for (std::size_t i = at; i < at + frames; ++i) {
      for (const Channel& channel : piece.channels) both.push_back(channel[i]);
    }
    const auto written = sf_writef_float(out.get(), both.data(), static_cast<sf_count_t>(frames));
    if (written != static_cast<sf_count_t>(frames)) throw BadOutput(file, sf_strerror(out.get()));
  }
  sf_write_sync(out.get());
  if (sf_close(out.release()) != 0) throw BadOutput(file, "its end is missing");
}

constexpr int picture_width = 1200, picture_height = 600, margin_left = 90, margin_right = 30,
              margin_top = 60, margin_bottom = 60;
constexpr int columns_per_strip = 50, strips = picture_width / columns_per_strip;
constexpr double lowest_hz = 40, highest_hz = 16'000;  // the range of the picture
static_assert(picture_width % columns_per_strip == 0);

using Strip = std::vector<std::uint32_t>;  // pixels in cairo's format, row by row from the top

// A colour from black over violet and orange to nearly white; `level` is 0 to 1.
inline std::uint32_t colour(double level) {
  constexpr std::array<std::array<double, 3>, 6> stops{
      {{5, 5, 20}, {55, 20, 110}, {150, 40, 120}, {225, 85, 75}, {250, 165, 45}, {252, 252, 190}}};
  const double at = std::clamp(level, 0.0, 1.0) * (stops.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  const double way = at - static_cast<double>(below);
  std::uint32_t pixel = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    pixel = pixel << 8 | static_cast<std::uint32_t>(std::lround(
                             stops[below][i] + way * (stops[below + 1][i] - stops[below][i])));
  }
  return pixel;
}

inline double row_of(double hz) {
  return picture_height * std::log(highest_hz / hz) / std::log(highest_hz / lowest_hz);
}

// The spectra of some columns of the picture.
inline Strip spectra(const Signal& of, int number, const Transform& transform) {
  constexpr double faintest_db = -100;
  const std::size_t size = transform.size();
  const double frames_per_column = static_cast<double>(of.frames()) / picture_width;
  const double bin_hz = frames_per_s / static_cast<double>(size);
  Strip strip(columns_per_strip * picture_height);
  const std::vector<double> window = hann(size);
  std::vector<double> time(size), loud(size / 2 + 1);
  for (int column = 0; column < columns_per_strip; ++column) {
    const double middle = (number * columns_per_strip + column + 0.5) * frames_per_column;
    const auto first = static_cast<std::ptrdiff_t>(middle) - static_cast<std::ptrdiff_t>(size / 2);
    for (std::size_t i = 0; i < size; ++i) {
      // A frame in front of the beginning has a huge number here.
      const auto at = static_cast<std::size_t>(first + static_cast<std::ptrdiff_t>(i));
      time[i] = at < of.frames() ? window[i] * (of.channels[0][at] + of.channels[1][at]) / 2 : 0;
    }
    const Bins bins = transform.forward(time);
    for (std::size_t i = 0; i < bins.size(); ++i) {
      loud[i] = 20 * std::log10(4 * std::abs(bins[i]) / static_cast<double>(size) + 1e-9);
    }
    for (int row = 0; row < picture_height; ++row) {
      const auto bin_at = [&](double y) {
        return lowest_hz * std::pow(highest_hz / lowest_hz, 1 - y / picture_height) / bin_hz;
      };
      const double low = bin_at(row + 1), high = bin_at(row);
      const auto below = static_cast<std::size_t>(low);
      double level = std::lerp(loud[below], loud[below + 1], low - static_cast<double>(below));
      for (std::size_t bin = below + 1; static_cast<double>(bin) < high; ++bin)
        level = std::max(level, loud[bin]);
      strip[static_cast<std::size_t>(row * columns_per_strip + column)] =
          colour(1 - level / faintest_db);
    }
  }
  return strip;
}

// The frequency goes upwards, by octaves, and the time to the right.
class Picture {
 public:
  Picture() {
    image_.reset(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height));
    pen_.reset(cairo_create(image_.get()));
    cairo_set_source_rgb(pen_.get(), 0.055, 0.067, 0.1);
    cairo_paint(pen_.get());
    cairo_select_font_face(pen_.get(), "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_source_rgb(pen_.get(), 0.75, 0.78, 0.85);
  }

  void add(const Strip& strip, int number) {
    cairo_surface_flush(image_.get());
    unsigned char* const pixels = cairo_image_surface_get_data(image_.get());
    const int stride = cairo_image_surface_get_stride(image_.get());
    for (int row = 0; row < picture_height; ++row) {
      const auto* const from = strip.data() + row * columns_per_strip;
      const int column = margin_left + number * columns_per_strip;
      unsigned char* const to = pixels + (margin_top + row) * stride + 4 * column;
      std::copy_n(reinterpret_cast<const unsigned char*>(from), 4 * columns_per_strip, to);
    }
    cairo_surface_mark_dirty(image_.get());
  }

  void write(const std::string& title, double seconds, const std::string& file) {
    for (const auto& [hz, name] : {std::pair(50, "50 Hz"),
                                   {100, "100"},
                                   {200, "200"},
                                   {500, "500"},
                                   {1000, "1 kHz"},
                                   {2000, "2"},
                                   {5000, "5"},
                                   {10'000, "10"}}) {
      text(name, margin_left - 10, margin_top + row_of(hz) + 5, 14, 1);
    }
    double step = 0.1;
    for (const double longer : {0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0}) {
      if (seconds / step > 12) step = longer;
    }
    for (int i = 0; i * step <= seconds; ++i) {
      const std::string tenths = std::to_string(std::lround(i * step * 10));
      const std::string shown =
          step >= 1 ? std::to_string(std::lround(i * step))
                    : std::to_string(std::lround(i * step * 10) / 10) + "." + tenths.back();
      text(shown + (i == 0 ? " s" : ""), margin_left + picture_width * i * step / seconds,
           height - margin_bottom + 24, 14, 0.5);
    }
    text(title, margin_left, margin_top - 24, 20,
         0);  // cairo would write no more after a text that is not UTF-8
    const cairo_status_t written = cairo_surface_write_to_png(image_.get(), file.c_str());
    if (written != CAIRO_STATUS_SUCCESS) throw BadOutput(file, cairo_status_to_string(written));
  }

  static constexpr int width = margin_left + picture_width + margin_right,
                       height = margin_top + picture_height + margin_bottom;

 private:
  // `before`: the share of the text that is left of x.
  void text(const std::string& said, double x, double y, double size, double before) {
    cairo_set_font_size(pen_.get(), size);
    cairo_text_extents_t extents;
    cairo_text_extents(pen_.get(), said.c_str(), &extents);
    cairo_move_to(pen_.get(), x - before * extents.width, y);
    cairo_show_text(pen_.get(), said.c_str());
  }

  std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> image_{nullptr,
                                                                            &cairo_surface_destroy};
  std::unique_ptr<cairo_t, decltype(&cairo_destroy)> pen_{nullptr, &cairo_destroy};
};
