// A score: what sonic plays, and the text it is read from. examples/README.md describes the format.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

constexpr double length_max_s = 300, pitch_min_hz = 16, pitch_max_hz = 20'000;
constexpr std::size_t notes_max = 10'000, tracks_max = 64, harmonics_max = 64,
                      score_bytes_max = 1 << 20;

struct Note {
  double start_s, length_s, hz, loudness;
};

// How a note sounds: the sum of its harmonics, under an envelope.
struct Instrument {
  std::vector<double> harmonics{1};  // how loud the first, the second, ... is
  double attack_s = 0.01, decay_s = 0.1, sustain = 0.7, release_s = 0.2;
  // The time in which the first harmonic falls by half; the n-th falls n times as fast. 0: no
  // harmonic falls.
  double ring_s = 0;
  double detune_cents = 0;  // how much higher the right channel is than the left one
};

struct Effect {
  enum class Kind { lowpass, highpass, stretch, reverb };
  Kind kind;
  double amount;     // in Hz, as a factor, or in seconds
  double share = 0;  // how much of the reverb is heard
};

struct Track {
  std::string instrument;
  std::vector<Note> notes{};
  std::vector<Effect> effects{};  // in the order of the score
  double gain_db = 0, pan = 0;
  double beats = 0;  // the beats written so far
  double loudness = 0.7;
  int line = 0;
};

struct Score {
  std::string title = "untitled";
  double tempo = 120;  // beats a minute
  std::map<std::string, Instrument> instruments{};
  std::vector<Track> tracks{};
};

// The score cannot be played. The text says where, and what to write instead.
struct BadScore : std::runtime_error {
  BadScore(const std::string& score, int at, const std::string& what)
      : std::runtime_error(score + (at == 0 ? "" : ":" + std::to_string(at)) + ": " + what),
        file(score),
        line(at) {}
  std::string file;
  int line;  // 0: the whole score
};

// Reads a score line by line. A line sets a property of the instrument or track above it.
class ScoreReader {
 public:
  // Throws BadScore.
  static Score read(const std::string& file) {
    ScoreReader reader(file);
    std::istringstream text(whole(file));
    for (std::string line; std::getline(text, line);) {
      ++reader.line_;
      reader.read_line(line);
    }
    reader.check();
    return std::move(reader.score_);
  }

 private:
  using Words = std::vector<std::string>;
  struct Wanted {
    const char* what;
    double least, most;
  };

  explicit ScoreReader(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void refuse(const std::string& what) const { throw BadScore(file_, line_, what); }

  // A word of the score in quotes, fit for a terminal.
  static std::string quoted(const std::string& word) {
    constexpr std::size_t shown_max = 40;
    std::string shown = word.substr(0, shown_max);
    std::ranges::replace_if(
        shown, [](unsigned char byte) { return byte < ' ' || byte == 0x7F; }, '?');
    return "'" + shown + (word.size() > shown_max ? "...'" : "'");
  }

  static std::string whole(const std::string& file) {
    if (std::filesystem::is_directory(file))
      throw BadScore(file, 0, "this is a folder; name a score in it");
    std::ifstream in(file, std::ios::binary);
    if (!in) throw BadScore(file, 0, "cannot be opened; is the name right, and may you read it?");
    std::string text(score_bytes_max + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad()) throw BadScore(file, 0, "cannot be read");
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > score_bytes_max)
      throw BadScore(file, 0, "is larger than 1 MiB; make it two scores");
    // Some editors write this mark at the beginning.
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    return text;
  }

  void read_line(const std::string& line) {
    Words words;
    std::istringstream in(line);
    for (std::string word; in >> word && !word.starts_with('#');) words.push_back(word);
    if (words.empty()) return;
    const std::string keyword = words.front();
    words.erase(words.begin());
    if (keyword == "title") {
      if (words.empty()) refuse("'title' wants words");
      score_.title =
          std::accumulate(words.begin() + 1, words.end(), words.front(),
                          [](const auto& said, const auto& word) { return said + ' ' + word; });
    } else if (keyword == "tempo") {
      if (!score_.tracks.empty())
        refuse("'tempo' holds for all tracks; put it above the first one");
      score_.tempo = numbers(keyword, words, {{"beats a minute", 10, 1000}})[0];
    } else if (keyword == "instrument") {
      begin_instrument(words);
    } else if (keyword == "track") {
      begin_track(words);
    } else if (instrument_ != nullptr) {
      set_instrument(*instrument_, keyword, words);
    } else if (!score_.tracks.empty()) {
      set_track(score_.tracks.back(), keyword, words);
    } else {
      refuse(quoted(keyword) +
             " belongs below an instrument or a track; begin with 'instrument NAME'");
    }
  }

  void begin_instrument(const Words& words) {
    if (words.size() != 1) refuse("'instrument' wants one word, its name");
    const auto [at, is_new] = score_.instruments.try_emplace(words[0]);
    if (!is_new)
      refuse("there is an instrument " + quoted(words[0]) + " already; choose another name");
    instrument_ = &at->second;
  }

  void begin_track(const Words& words) {
    if (words.size() != 1) refuse("'track' wants one word, the name of its instrument");
    if (!score_.instruments.contains(words[0])) {
      refuse("there is no instrument " + quoted(words[0]) +
             " above; describe it first, with 'instrument NAME'");
    }
    if (score_.tracks.size() == tracks_max)
      refuse("there are more than " + std::to_string(tracks_max) + " tracks");
    instrument_ = nullptr;
    score_.tracks.push_back({.instrument = words[0], .line = line_});
  }

  void set_instrument(Instrument& of, const std::string& keyword, const Words& words) {
    if (keyword == "harmonics") {
      if (words.empty() || words.size() > harmonics_max)
        refuse("'harmonics' wants 1 to 64 numbers, each from 0 to 1");
      of.harmonics = numbers(keyword, words, std::vector<Wanted>(words.size(), {"loudness", 0, 1}));
      if (std::ranges::all_of(of.harmonics, [](double loud) { return loud == 0; })) {
        refuse("all harmonics are 0; one at least must be heard");
      }
    } else if (keyword == "envelope") {
      const auto got = numbers(keyword, words,
                               {{"attack seconds", 0, 20},
                                {"decay seconds", 0, 20},
                                {"sustain level", 0, 1},
                                {"release seconds", 0, 20}});
      of.attack_s = got[0], of.decay_s = got[1], of.sustain = got[2], of.release_s = got[3];
    } else if (keyword == "ring") {
      of.ring_s = numbers(keyword, words, {{"seconds", 0.01, 60}})[0];
    } else if (keyword == "detune") {
      of.detune_cents = numbers(keyword, words, {{"cents", 0, 100}})[0];
    } else {
      refuse("an instrument has no " + quoted(keyword) +
             "; it has harmonics, envelope, ring and detune. Notes belong below 'track NAME'");
    }
  }

  void set_track(Track& of, const std::string& keyword, Words words) {
    using enum Effect::Kind;
    if (keyword == "play") {
      play(of, words);
    } else if (keyword == "repeat") {
      const Words first(words.begin(), words.begin() + (words.empty() ? 0 : 1));
      const double times = numbers(keyword, first, {{"times", 1, 1000}})[0];
      if (times != std::floor(times)) refuse("'repeat' wants a whole number of times");
      words.erase(words.begin());
      for (int i = 0; i < static_cast<int>(times); ++i) play(of, words);
    } else if (keyword == "gain") {
      of.gain_db = numbers(keyword, words, {{"decibels", -60, 12}})[0];
    } else if (keyword == "pan") {
      of.pan = numbers(keyword, words, {{"place, left to right", -1, 1}})[0];
    } else if (keyword == "lowpass" || keyword == "highpass") {
      const double hz = numbers(keyword, words, {{"Hz", 20, 20'000}})[0];
      add(of, {keyword == "lowpass" ? lowpass : highpass, hz});
    } else if (keyword == "stretch") {
      add(of, {stretch, numbers(keyword, words, {{"times as long", 0.25, 8}})[0]});
    } else if (keyword == "reverb") {
      const auto got = numbers(keyword, words, {{"seconds", 0.1, 10}, {"share of it", 0, 1}});
      add(of, {reverb, got[0], got[1]});
    } else {
      refuse("a track has no " + quoted(keyword) +
             "; it has play, repeat, gain, pan, lowpass, highpass, stretch and reverb");
    }
  }

  void add(Track& to, Effect effect) {
    if (to.effects.size() == 16) refuse("a track has at most 16 effects");
    to.effects.push_back(effect);
  }

  void play(Track& on, const Words& words) {
    static const std::map<std::string, double, std::less<>> levels{
        {"pp", 0.25}, {"p", 0.4}, {"mp", 0.55}, {"mf", 0.7}, {"f", 0.85}, {"ff", 1}};
    if (words.empty())
      refuse("there is nothing to play; write notes as C4:1 or Eb4+G4:1/2, and -:1 for a rest");
    for (const std::string& word : words) {
      if (word == "|") continue;
      if (const auto level = levels.find(word); level != levels.end()) {
        on.loudness = level->second;
        continue;
      }
      const std::size_t colon = word.find(':');
      if (colon == std::string::npos) {
        refuse(quoted(word) +
               " has no length; write PITCH:BEATS as in C4:1, or how loud: pp p mp mf f ff");
      }
      const double beats = length(word, std::string_view(word).substr(colon + 1)),
                   beat_s = 60 / score_.tempo;
      std::istringstream chord(word.substr(0, colon));
      if (chord.str() != "-") {
        if (chord.str().empty() || chord.str().ends_with('+'))
          refuse(quoted(word) + " lacks a pitch; write one as in C4:1");
        for (std::string name; std::getline(chord, name, '+');) {
          if (++notes_ > notes_max) refuse("there are more than 10000 notes; make it two scores");
          on.notes.push_back({on.beats * beat_s, beats * beat_s, pitch(name), on.loudness});
        }
      }
      on.beats += beats;
      if (on.beats * beat_s > length_max_s)
        refuse("the track is longer than 300 seconds here; a score ends before");
    }
  }

  double length(const std::string& word, std::string_view text) const {
    const std::size_t bar = text.find('/');
    double beats = 0, parts = 1;
    const bool is_number = read_number(text.substr(0, bar), beats) &&
                           (bar == text.npos || read_number(text.substr(bar + 1), parts));
    if (is_number && beats / parts >= 1.0 / 64 && beats / parts <= 256) return beats / parts;
    refuse(quoted(word) +
           " has no length from 1/64 to 256 beats; write one as in C4:1, C4:0.5 or C4:3/4");
  }

  double pitch(const std::string& name) const {
    constexpr std::array<int, 7> of_letter{9, 11, 0, 2, 4, 5, 7};  // half tones above C, from A on
    if (double hz = 0; name.ends_with("hz") &&
                       read_number(std::string_view(name).substr(0, name.size() - 2), hz)) {
      if (hz >= pitch_min_hz && hz <= pitch_max_hz) return hz;
      refuse(quoted(name) + " is out of range; pitches go from 16hz to 20000hz");
    }
    std::size_t at = 0;
    const bool has_letter = !name.empty() && name[0] >= 'A' && name[0] <= 'G';
    int half_tones = has_letter ? of_letter[static_cast<std::size_t>(name[at++] - 'A')] : 0;
    if (at < name.size() && (name[at] == '#' || name[at] == 'b'))
      half_tones += name[at++] == '#' ? 1 : -1;
    int octave = 0;
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), octave);
    if (!has_letter || error == std::errc::invalid_argument || end != name.data() + name.size()) {
      refuse(quoted(name) +
             " is no pitch; write a letter from A to G, then # or b, then the octave, as in F#4 or "
             "Bb3, "
             "or 440hz");
    }
    if (error != std::errc{} || octave < 0 || octave > 9)
      refuse(quoted(name) + " is out of range; octaves go from 0 to 9");
    const double hz = 440 * std::exp2((half_tones - 9) / 12.0 + octave - 4);
    if (hz < pitch_min_hz) refuse(quoted(name) + " is out of range; the lowest pitch is C0");
    return hz;
  }

  std::vector<double> numbers(const std::string& keyword, const Words& words,
                              const std::vector<Wanted>& wanted) const {
    std::vector<double> got(wanted.size());
    bool right = words.size() == wanted.size();
    for (std::size_t i = 0; right && i < wanted.size(); ++i) {
      right =
          read_number(words[i], got[i]) && got[i] >= wanted[i].least && got[i] <= wanted[i].most;
    }
    if (right) return got;
    std::ostringstream said;
    said << '\'' << keyword << "' wants ";
    const char* between = "";
    for (const auto& [what, least, most] : wanted) {
      said << std::exchange(between, ", ") << what << " (" << least << " to " << most << ')';
    }
    refuse(said.str());
  }

  static bool read_number(std::string_view text, double& number) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    return error == std::errc{} && rest == end && std::isfinite(number);
  }

  void check() {
    if (notes_ == 0)
      throw BadScore(file_, 0, "there is no note in it; write 'play C4:1' below a track");
    for (const Track& track : score_.tracks) {
      double length_s =
          track.beats * 60 / score_.tempo + score_.instruments.at(track.instrument).release_s;
      for (const Effect& effect : track.effects) {
        if (effect.kind == Effect::Kind::stretch)
          length_s = length_s * effect.amount + 0.1;  // and one grain more
        if (effect.kind == Effect::Kind::reverb) length_s += effect.amount;
      }
      if (length_s > length_max_s)
        throw BadScore(
            file_, track.line,
            "with its effects this track is longer than 300 seconds; shorten one of them");
    }
    std::erase_if(score_.tracks, [](const Track& track) { return track.notes.empty(); });
  }

  const std::string file_;
  Score score_;
  Instrument* instrument_ = nullptr;  // the one being described
  int line_ = 0;
  std::size_t notes_ = 0;
};
