// frames: balls in a window, at 60 frames a second: a loop of SDL's own, with troupe beside it.
// needs: sdl2
//
//     ./run examples/frames.cpp
//     ./run examples/frames.cpp --frames 120 --balls 500
//
// Each ball is an actor on the pool, which moves by itself and tells the Scene its new place. The
// Scene is on the main thread, as SDL's windows demand. Between two frames the main loop gives its
// time to run_once(), which handles the Scene's messages until the next frame is due.
#include <SDL.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/troupe.hpp"

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int width = 640, height = 480, ball_size = 6;
constexpr auto frame = std::chrono::nanoseconds(1s) / 60;

struct Place {
  double x = 0, y = 0;
};

struct Scene {
  explicit Scene(int balls) : places(static_cast<std::size_t>(balls)) {}
  void move(int ball, Place to) {
    places[static_cast<std::size_t>(ball)] = to;
    ++moves;
  }
  std::vector<Place> places;
  long moves = 0;
};

struct Ball {
  Ball(troupe::ref<Scene> shows, int index) : scene(std::move(shows)), number(index) {
    std::minstd_rand random(static_cast<unsigned>(index + 1));
    std::uniform_real_distribution<double> speed(-4, 4);
    step = {speed(random), speed(random)};
  }
  void tick() {
    place = {place.x + step.x, place.y + step.y};
    if (place.x < 0 || place.x > width) step.x = -step.x;
    if (place.y < 0 || place.y > height) step.y = -step.y;
    scene.tell<&Scene::move>(number, place);
  }
  troupe::ref<Scene> scene;
  const int number;
  Place place{width / 2.0, height / 2.0}, step;
};

// SDL, a window and its renderer.
class Window {
 public:
  Window() {
    if (SDL_Init(SDL_INIT_VIDEO) != 0) throw std::runtime_error(SDL_GetError());
    if (SDL_CreateWindowAndRenderer(width, height, 0, &window_, &renderer_) != 0)
      throw std::runtime_error(SDL_GetError());
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    SDL_DestroyRenderer(renderer_);
    SDL_DestroyWindow(window_);
    SDL_Quit();
  }
  // Returns false when the user closes the window.
  bool handle_events() {
    for (SDL_Event event; SDL_PollEvent(&event) != 0;) {
      if (event.type == SDL_QUIT) return false;
    }
    return true;
  }
  void draw(const std::vector<Place>& balls) {
    SDL_SetRenderDrawColor(renderer_, 20, 20, 30, 255);
    SDL_RenderClear(renderer_);
    SDL_SetRenderDrawColor(renderer_, 240, 200, 80, 255);
    for (const Place& at : balls) {
      const SDL_Rect square{static_cast<int>(at.x), static_cast<int>(at.y), ball_size, ball_size};
      SDL_RenderFillRect(renderer_, &square);
    }
    SDL_RenderPresent(renderer_);
  }

 private:
  SDL_Window* window_ = nullptr;
  SDL_Renderer* renderer_ = nullptr;
};

void show(int frames, int balls) {
  Window window;
  troupe::runtime rt;
  Scene* shown = nullptr;
  auto scene = rt.spawn<Scene>(troupe::on_main(), balls);
  scene.tell([there = troupe::unchecked{&shown}](Scene& self) { *there = &self; });
  std::vector<troupe::timer> timers;
  for (int i = 0; i < balls; ++i) {
    auto ball = rt.spawn<Ball>(scene, i);
    timers.push_back(rt.every(frame, [ball] { ball.tell<&Ball::tick>(); }));
  }
  int drawn = 0;
  auto next = Clock::now();
  while (drawn < frames && window.handle_events()) {
    next += frame;
    for (auto left = next - Clock::now(); left > 0s; left = next - Clock::now()) rt.run_once(left);
    if (shown == nullptr) continue;
    window.draw(shown->places);
    ++drawn;
  }
  const long moves = shown == nullptr ? 0 : shown->moves;
  std::cout << drawn << " frames, " << (moves >= balls ? "every ball moved" : "too few moves")
            << '\n';
  rt.stop(troupe::stop_mode::discard);
  rt.run();
}

int number_of(std::string_view text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 1)
    throw std::invalid_argument(std::string(text) + " is no number of at least 1");
  return value;
}

int main(int argc, char** argv) {
  int frames = 600, balls = 200;
  try {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const bool is_frames = words[i] == "--frames";
      if ((!is_frames && words[i] != "--balls") || i + 1 == words.size()) {
        std::cerr << "usage: frames [--frames N] [--balls N]\n";
        return words[i] == "--help" ? 0 : 2;
      }
      (is_frames ? frames : balls) = number_of(words[i + 1]);
    }
    show(frames, balls);
  } catch (const std::exception& failure) {
    std::cerr << "frames: " << failure.what() << '\n';
    return 1;
  }
}
