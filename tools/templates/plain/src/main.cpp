#include <exception>
#include <iostream>
#include <string>

#include "service.hpp"

int main(int argc, char** argv) try {
  const int items = argc > 1 ? std::stoi(argv[1]) : 100;
  troupe::runtime rt;
  const auto stock = rt.spawn<Stock>(items);
  auto ada = rt.spawn(buy_all(stock));
  auto bob = rt.spawn(buy_all(stock));
  rt.run();  // returns when nothing is left to do
  std::cout << "Ada bought " << ada.get() << ", Bob " << bob.get() << '\n';
} catch (const std::exception& failed) {
  std::cerr << argv[0] << ": " << failed.what() << '\n';
  return 1;
}
