// sonic: renders a score to a WAV file and to a picture of its spectrum, on all cores.
// needs: sndfile fftw3 cairo
//
//     ./run examples/sonic.cpp examples/sonic/lake.score --spectrogram lake.png
//
// Each signal between two steps is the value of a troupe::lazy: a call that is made when a thread
// wants its result, by that thread or by an idle one. Each step makes the lazies that it needs and
// then wants them, so as many branches of the graph run at the same time as there are workers. A
// signal is freed when all steps that wanted it have used it. The score decides the order of all
// additions, so the files are the same to the bit with one worker and with eight.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sonic/output.hpp"
#include "sonic/score.hpp"
#include "sonic/signal.hpp"
#include "troupe/troupe.hpp"

// A counted handle; copies share the signal.
using Sound = troupe::lazy<Signal>;

// Draws how much of the graph is done. An actor on the main thread, which has nothing else to do
// meanwhile.
class Progress {
 public:
  explicit Progress(std::size_t nodes) : nodes_(nodes) {}
  Progress(const Progress&) = delete;
  ~Progress() {
    // An error message goes to the next line.
    if (drawn_ != 0 && done_ != nodes_) std::cerr << '\n';
  }

  void node_done() {
    constexpr std::size_t width = 50;
    ++done_;
    const std::size_t percent = done_ * 100 / nodes_;
    if (percent == std::exchange(drawn_, percent)) return;
    std::string bar(width, ' ');
    std::fill_n(bar.begin(), std::min(width, width * done_ / nodes_), '=');
    std::cerr << "\r[" + bar + "] " + std::to_string(percent) + " %" + (done_ == nodes_ ? "\n" : "")
              << std::flush;
  }

 private:
  std::size_t nodes_, done_ = 0, drawn_ = 0;
};

// The graph of calls. Its nodes are calls of this class's methods. Tracks with the same reverb
// share its rooms.
class Studio {
  // A call of one of the methods as a lazy, which the progress counts.
  template <class Method, class... Args>
  auto node(Method method, Args... args) const {
    return troupe::parallel([this, method](auto&&... given) {
      auto value = (this->*method)(std::forward<decltype(given)>(given)...);
      if (progress_) progress_->tell<&Progress::node_done>();
      return value;
    })(std::move(args)...);
  }

 public:
  explicit Studio(const Score& score) : score_(score) {}

  // Returns the number of nodes.
  std::size_t nodes(bool with_picture) const {
    std::size_t count =
        2 * score_.tracks.size() + 2 * reverbs().size() + (with_picture ? strips : 0);
    for (const Track& track : score_.tracks) {
      count += 2 * (track.notes.size() - 1) + track.effects.size();
      count += 2 * static_cast<std::size_t>(
                       std::ranges::count(track.effects, Effect::Kind::reverb, &Effect::kind));
    }
    return count;
  }

  void report_to(troupe::ref<Progress> progress) { progress_ = std::move(progress); }

  Sound piece() {
    for (const double seconds : reverbs()) {
      for (const std::size_t side : sides) {
        rooms_.emplace(std::pair(seconds, side), node(&Studio::make_room, seconds, side));
      }
    }
    return node(&Studio::master);
  }

  std::vector<troupe::lazy<Strip>> picture_of(const Sound& piece) {
    std::vector<troupe::lazy<Strip>> made;
    for (int number = 0; number < strips; ++number)
      made.push_back(node(&Studio::strip, piece, number));
    return made;
  }

 private:
  // Returns the lengths of the reverbs, each length once.
  std::set<double> reverbs() const {
    std::set<double> seconds;
    for (const Track& track : score_.tracks) {
      for (const Effect& effect : track.effects) {
        if (effect.kind == Effect::Kind::reverb) seconds.insert(effect.amount);
      }
    }
    return seconds;
  }

  Signal master() const {
    const Sound all = node(&Studio::mix_of_tracks, std::span(score_.tracks));
    return mastered(all.get());
  }

  Signal mix_of_tracks(std::span<const Track> tracks) const {
    if (tracks.size() == 1) {
      const Track& only = tracks.front();
      return placed(after_effects(&only, only.effects.size()), only.gain_db, only.pan);
    }
    const std::size_t half = tracks.size() / 2;
    const Sound one = node(&Studio::mix_of_tracks, tracks.first(half));
    const Sound other = node(&Studio::mix_of_tracks, tracks.subspan(half));
    return mixed(one.get(), other.get());
  }

  // Mixes by halves: so intermediate sums are short, and at most as many of them wait as there are
  // halvings.
  Signal mix_of_notes(const Instrument* by, std::span<const Note> notes) const {
    if (notes.size() == 1) return play(notes.front(), *by);
    const std::size_t half = notes.size() / 2;
    const Sound one = node(&Studio::mix_of_notes, by, notes.first(half));
    const Sound other = node(&Studio::mix_of_notes, by, notes.subspan(half));
    return mixed(one.get(), other.get());
  }

  // Returns the track after the first `count` of its effects.
  Signal after_effects(const Track* track, std::size_t count) const {
    if (count == 0) return mix_of_notes(&score_.instruments.at(track->instrument), track->notes);
    Sound before = node(&Studio::after_effects, track, count - 1);
    const Effect& effect = track->effects[count - 1];
    if (effect.kind == Effect::Kind::stretch) return stretched(before.get(), effect.amount);
    if (effect.kind != Effect::Kind::reverb)
      return filtered(before.get(), effect.kind, effect.amount);
    Signal made{.start = before.get().start};
    const auto left = node(&Studio::in_room, before, std::size_t{0}, effect);
    const auto right = node(&Studio::in_room, before, std::size_t{1}, effect);
    before.release();  // so that the later one of these two frees it, and not the end of this call
    made.channels = {left.get(), right.get()};
    return made;
  }

  Channel in_room(Sound dry, std::size_t side, Effect effect) const {
    const troupe::lazy<Room>& echo = rooms_.at({effect.amount, side});
    return convolved(dry.get().channels[side], echo.get(), effect.share, long_transform_);
  }
  Room make_room(double seconds, std::size_t side) const {
    return room(seconds, side, long_transform_);
  }

  Strip strip(Sound piece, int number) const {
    return spectra(piece.get(), number, short_transform_);
  }

  const Score& score_;
  // For the rooms, and for the picture.
  const Transform long_transform_{1 << 16}, short_transform_{1 << 13};
  std::map<std::pair<double, std::size_t>, troupe::lazy<Room>> rooms_;  // by seconds and side
  std::optional<troupe::ref<Progress>> progress_;
};

constexpr const char* usage =
    "usage: sonic SCORE [-o OUT.wav] [--spectrogram OUT.png] [--workers N] [--progress]\n"
    "  SCORE              what to play; examples/README.md describes the format\n"
    "  -o OUT.wav         where to write the sound, stereo, 24 bits (default sonic.wav)\n"
    "  --spectrogram PNG  where to write a picture of its spectrum (default: none)\n"
    "  --workers N        threads, 1 to 64 (default: one for each CPU)\n"
    "  --progress         draw a bar although standard error is no terminal\n"
    "Ends with 0; with 1 if the score is refused or a file cannot be written.\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string score, sound = "sonic.wav", picture;
  unsigned workers = 0;
  bool progress = isatty(STDERR_FILENO) == 1;
};

bool are_one_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  if (std::filesystem::equivalent(one, other, none)) return true;
  return std::filesystem::weakly_canonical(one, none) ==
         std::filesystem::weakly_canonical(other, none);
}

Options parse(int argc, char** argv) {
  Options chosen;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_score = !word.starts_with('-');
    if (!given.insert(is_score ? "score" : word).second)
      throw WrongUse("'" + word + "' is one too many");
    if (is_score) {
      chosen.score = word;
    } else if (word == "--progress") {
      chosen.progress = true;
    } else if (word != "-o" && word != "--spectrogram" && word != "--workers") {
      throw WrongUse("there is no option '" + word + "'");
    } else if (++i == argc || *argv[i] == '\0') {
      throw WrongUse(word + " wants a value");
    } else if (word == "--workers") {
      const std::string_view text = argv[i];
      const auto [end, bad] = std::from_chars(text.begin(), text.end(), chosen.workers);
      if (bad != std::errc{} || end != text.end() || chosen.workers < 1 || chosen.workers > 64) {
        throw WrongUse("--workers wants a number from 1 to 64");
      }
    } else {
      (word == "-o" ? chosen.sound : chosen.picture) = argv[i];
    }
  }
  if (chosen.score.empty()) throw WrongUse("there is no score");
  if (are_one_file(chosen.sound, chosen.score))
    throw WrongUse("the sound would overwrite the score");
  if (chosen.picture.empty()) return chosen;
  if (are_one_file(chosen.picture, chosen.score))
    throw WrongUse("the picture would overwrite the score");
  if (are_one_file(chosen.picture, chosen.sound))
    throw WrongUse("the picture would overwrite the sound");
  return chosen;
}

void render(const Options& options, const Score& score) {
  const bool with_picture = !options.picture.empty();
  Studio studio(score);  // it and the score outlive the runtime, whose jobs refer to them
  std::optional<Sound> piece;
  std::vector<troupe::lazy<Strip>> strips_made;

  troupe::runtime rt({.workers = options.workers});
  const std::size_t nodes = studio.nodes(with_picture);
  if (options.progress) studio.report_to(rt.spawn<Progress>(troupe::on_main(), nodes));
  rt.post([&] {
    piece = studio.piece();
    piece->get();
    if (with_picture) strips_made = studio.picture_of(*piece);
    for (const auto& strip : strips_made) strip.get();
  });
  rt.run();  // returns when all is done; throws what a node has thrown

  const Signal& sound = piece->get();
  const double seconds = static_cast<double>(sound.frames()) / frames_per_s;
  write_wav(sound, options.sound);
  if (with_picture) {
    Picture picture;
    for (int i = 0; i < strips; ++i) picture.add(strips_made[static_cast<std::size_t>(i)].get(), i);
    picture.write(score.title, seconds, options.picture);
  }
  std::cout << score.title << ": " << std::round(seconds * 10) / 10 << " s out of " << nodes
            << " nodes\n"
            << options.sound << (with_picture ? "\n" : "") << options.picture << '\n';
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  const Options options = parse(argc, argv);
  const Score score = ScoreReader::read(options.score);
  check_writable(options.sound);
  if (!options.picture.empty()) check_writable(options.picture);
  render(options, score);
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "sonic: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "sonic: " << failure.what() << '\n';
  return 1;
}
