// Signals, and the functions that make one out of others. Each function depends only on its
// arguments, and adds in a fixed order: the same call gives the same bits on any thread.
#pragma once

#include <fftw3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numbers>
#include <stdexcept>
#include <utility>
#include <vector>

#include "score.hpp"

constexpr int frames_per_s = 48'000;
constexpr double pi = std::numbers::pi;

using Channel = std::vector<float>;
constexpr std::array<std::size_t, 2> sides{0, 1};  // left, right

// Stereo. A signal never changes after it is made.
struct Signal {
  std::size_t start = 0;  // the frame of the piece where it begins
  std::array<Channel, 2> channels{};
  std::size_t frames() const { return channels[0].size(); }
};

using Bins = std::vector<std::complex<double>>;

// The Fourier transform of one size. FFTW plans on one thread only and executes on all of them, so
// make the object before other threads run. The plan is estimated and not measured, so that it is
// the same in each run.
class Transform {
 public:
  explicit Transform(std::size_t size) : size_(size) {
    std::vector<double> time(size);
    Bins bins(size / 2 + 1);
    const int n = static_cast<int>(size);
    forward_ = fftw_plan_dft_r2c_1d(n, time.data(), raw(bins), FFTW_ESTIMATE | FFTW_UNALIGNED);
    inverse_ = fftw_plan_dft_c2r_1d(n, raw(bins), time.data(), FFTW_ESTIMATE | FFTW_UNALIGNED);
    if (forward_ == nullptr || inverse_ == nullptr) throw std::runtime_error("FFTW has no plan");
  }
  Transform(const Transform&) = delete;
  ~Transform() {
    fftw_destroy_plan(forward_);
    fftw_destroy_plan(inverse_);
  }

  std::size_t size() const { return size_; }
  Bins forward(std::vector<double>& time) const {
    Bins bins(size_ / 2 + 1);
    fftw_execute_dft_r2c(forward_, time.data(), raw(bins));
    return bins;
  }
  // The result is multiplied by `size`, as FFTW does. Overwrites the bins.
  void inverse(Bins& bins, std::vector<double>& time) const {
    fftw_execute_dft_c2r(inverse_, raw(bins), time.data());
  }

 private:
  static fftw_complex* raw(Bins& bins) { return reinterpret_cast<fftw_complex*>(bins.data()); }
  std::size_t size_;
  fftw_plan forward_, inverse_;
};

inline std::size_t frames_of(double seconds) {
  return static_cast<std::size_t>(std::lround(seconds * frames_per_s));
}

// Numbers from -1 to 1 that look random and are the same in each run.
inline double noise(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t bits = seed * 0xD1342543DE82EF95 + index * 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return std::ldexp(static_cast<double>(bits >> 11), -52) - 1;
}

// Rises to 1 in the attack and falls to the sustained level in the decay. Stays there until the
// note ends, and then falls to 0.
inline double envelope(const Instrument& by, double length_s, double at_s) {
  const auto held = [&](double s) {
    if (s < by.attack_s) return s / by.attack_s;
    if (s < by.attack_s + by.decay_s) return 1 - (1 - by.sustain) * (s - by.attack_s) / by.decay_s;
    return by.sustain;
  };
  if (at_s < length_s) return held(at_s);
  const double left = by.release_s == 0 ? 0 : std::max(0.0, 1 - (at_s - length_s) / by.release_s);
  return held(length_s) * left * left;
}

inline Signal play(const Note& note, const Instrument& by) {
  constexpr double silence_halvings = 40;
  const std::size_t frames = frames_of(note.length_s + by.release_s) + 1;
  double loudest = 0;
  for (const double level : by.harmonics) loudest += level;
  Signal made{.start = frames_of(note.start_s)};
  for (const std::size_t side : sides) {
    if (side == 1 && by.detune_cents == 0) {
      made.channels[1] = made.channels[0];
      break;
    }
    const double base_hz =
        note.hz * std::exp2((static_cast<double>(side) - 0.5) * by.detune_cents / 1200);
    std::vector<double> sum(frames);
    for (std::size_t n = 1; n <= by.harmonics.size(); ++n) {
      const double number = static_cast<double>(n), hz = base_hz * number,
                   level = by.harmonics[n - 1];
      if (level == 0 || hz >= frames_per_s / 2.0) continue;
      // A pointer that turns by one frame's angle and becomes shorter as the harmonic fades.
      const double halvings = by.ring_s == 0 ? 0 : number / (by.ring_s * frames_per_s);
      const std::complex<double> turn =
          std::polar(std::exp2(-halvings), 2 * pi * hz / frames_per_s);
      const double audible =
          by.ring_s == 0 ? static_cast<double>(frames) : silence_halvings / halvings;
      const std::size_t end = std::min(frames, static_cast<std::size_t>(audible));
      double re = level, im = 0;
      for (std::size_t i = 0; i < end; ++i) {
        sum[i] += im;
        const double next = re * turn.real() - im * turn.imag();
        im = re * turn.imag() + im * turn.real();
        re = next;
      }
    }
    Channel& out = made.channels[side];
    out.reserve(frames);
    for (std::size_t i = 0; i < frames; ++i) {
      const double level = envelope(by, note.length_s, static_cast<double>(i) / frames_per_s);
      out.push_back(static_cast<float>(sum[i] * level * note.loudness / loudest));
    }
  }
  return made;
}

inline Signal mixed(const Signal& one, const Signal& other) {
  Signal sum{.start = std::min(one.start, other.start)};
  const std::size_t end = std::max(one.start + one.frames(), other.start + other.frames());
  for (const std::size_t side : sides) {
    Channel& out = sum.channels[side];
    out.resize(end - sum.start);
    for (const Signal* in : {&one, &other}) {
      float* const to = out.data() + (in->start - sum.start);
      for (std::size_t i = 0; i < in->frames(); ++i) to[i] += in->channels[side][i];
    }
  }
  return sum;
}

// A filter of the second order, by the formulas of R. Bristow-Johnson's "Audio EQ Cookbook".
inline Signal filtered(Signal in, Effect::Kind kind, double hz) {
  const double angle = 2 * pi * hz / frames_per_s, alpha = std::sin(angle) / std::numbers::sqrt2,
               a0 = 1 + alpha;
  const double sign = kind == Effect::Kind::lowpass ? 1 : -1;
  const double b1 = (sign - std::cos(angle)) / a0, b0 = sign * b1 / 2;
  const double a1 = -2 * std::cos(angle) / a0, a2 = (1 - alpha) / a0;
  for (Channel& channel : in.channels) {
    double x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    for (float& sample : channel) {
      double y = b0 * sample + b1 * x1 + b0 * x2 - a1 * y1 - a2 * y2;
      if (std::abs(y) < 1e-20) y = 0;  // tiny values after the end would slow the calculation down
      x2 = std::exchange(x1, sample);
      y2 = std::exchange(y1, y);
      sample = static_cast<float>(y);
    }
  }
  return in;
}

// A window that rises from 0 and falls to 0 smoothly.
inline std::vector<double> hann(std::size_t frames) {
  std::vector<double> window(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    window[i] = 0.5 - 0.5 * std::cos(2 * pi * static_cast<double>(i) / static_cast<double>(frames));
  }
  return window;
}

// Makes the signal longer or shorter at the same pitch: short grains of the signal, each unchanged,
// are placed at another distance. Each grain is taken from a random place near its own, because
// otherwise their distance would be heard as a tone.
inline Signal stretched(const Signal& in, double times) {
  constexpr std::size_t grain = 4096, hop = grain / 4;
  constexpr double beside = hop / 2.0;
  static const std::vector<double> window = hann(grain);  // four of them add up to 2
  const auto scaled = [times](std::size_t frames) {
    return static_cast<std::size_t>(std::llround(static_cast<double>(frames) * times));
  };
  Signal made{.start = scaled(in.start)};
  for (Channel& out : made.channels) out.resize(scaled(in.frames()) + grain);
  for (std::size_t to = 0; to + grain <= made.frames(); to += hop) {
    const double from = static_cast<double>(to) / times + beside * noise(1, to);
    const std::size_t first = from < 0 ? 0 : static_cast<std::size_t>(from);
    if (first >= in.frames()) continue;
    const std::size_t length = std::min(grain, in.frames() - first);
    for (const std::size_t side : sides) {
      const float* const source = in.channels[side].data() + first;
      float* const out = made.channels[side].data() + to;
      for (std::size_t i = 0; i < length; ++i)
        out[i] += static_cast<float>(source[i] * window[i] / 2);
    }
  }
  return made;
}

// The echo of a clap in a room, in the form that a convolution needs: transforms of blocks of half
// the transform's size.
struct Room {
  std::size_t frames = 0;
  std::vector<Bins> blocks{};
};

// Noise that falls by 60 dB in this time and loses its treble first.
inline Room room(double seconds, std::size_t side, const Transform& transform) {
  const std::size_t frames = frames_of(seconds), block = transform.size() / 2;
  std::vector<double> echo(frames);
  double soft = 0, energy = 0;
  for (std::size_t i = 0; i < frames; ++i) {
    const double way = static_cast<double>(i) / static_cast<double>(frames);
    soft += (0.75 - 0.65 * way) * (noise(2 + side, i) - soft);
    echo[i] = soft * std::pow(10, -3 * way);
    energy += echo[i] * echo[i];
  }
  Room made{.frames = frames};
  for (std::size_t at = 0; at < frames; at += block) {
    std::vector<double> time(transform.size());
    for (std::size_t i = 0; i < block && at + i < frames; ++i)
      time[i] = echo[at + i] / std::sqrt(energy);
    made.blocks.push_back(transform.forward(time));
  }
  return made;
}

// The channel in the room, blended with the dry channel.
inline Channel convolved(const Channel& in, const Room& with, double share,
                         const Transform& transform) {
  const std::size_t block = transform.size() / 2;
  Channel out(in.size() + with.frames);
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<float>((1 - share) * in[i]);
  const double scale = share / static_cast<double>(transform.size());
  // The transforms of the blocks so far, newest first, as many as the room has.
  std::deque<Bins> heard;
  for (std::size_t at = 0; at < out.size(); at += block) {
    std::vector<double> time(transform.size());
    for (std::size_t i = 0; i < block && at + i < in.size(); ++i) time[i] = in[at + i];
    heard.push_front(transform.forward(time));
    if (heard.size() > with.blocks.size()) heard.pop_back();
    Bins sum(transform.size() / 2 + 1);
    for (std::size_t ago = 0; ago < heard.size(); ++ago) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += heard[ago][i] * with.blocks[ago][i];
    }
    transform.inverse(sum, time);
    for (std::size_t i = 0; i < time.size() && at + i < out.size(); ++i)
      out[at + i] += static_cast<float>(scale * time[i]);
  }
  return out;
}

// The signal between left and right, as loud as the score says.
inline Signal placed(Signal in, double gain_db, double pan) {
  const double gain = std::pow(10, gain_db / 20),
               angle = (pan + 1) * pi / 4;  // the same power at each place
  const std::array<double, 2> gains{gain * std::cos(angle), gain * std::sin(angle)};
  for (const std::size_t side : sides) {
    for (float& sample : in.channels[side]) sample = static_cast<float>(sample * gains[side]);
  }
  return in;
}

// The whole piece from its beginning on, almost as loud as a file can hold.
inline Signal mastered(const Signal& in) {
  constexpr float peak = 0.89F, nothing = 1e-9F;  // of full scale: -1 dB
  float loudest = 0;
  for (const Channel& channel : in.channels) {
    for (const float sample : channel) loudest = std::max(loudest, std::abs(sample));
  }
  if (!(loudest > nothing))
    throw std::runtime_error(
        "nothing can be heard; let the filters leave some of the notes, or play others");
  Signal made;
  for (const std::size_t side : sides) {
    made.channels[side].resize(in.start);
    for (const float sample : in.channels[side])
      made.channels[side].push_back(sample * (peak / loudest));
  }
  return made;
}
