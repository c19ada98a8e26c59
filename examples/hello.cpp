// hello: greets the names it is given; its actors run on all cores, and it ends by itself.
#include <exception>
#include <iostream>
#include <string>

#include "troupe/actors.hpp"

struct Printer {
  void line(std::string text) { std::cout << text << '\n'; }
};

struct Greeter {
  troupe::ref<Printer> printer;
  void greet(std::string name) { printer.tell<&Printer::line>("hello, " + name); }
};

int main(int argc, char** argv) try {
  troupe::runtime rt;                                   // a worker for each CPU
  auto printer = rt.spawn<Printer>(troupe::on_main());  // this actor stays on the main thread
  auto greeter = rt.spawn<Greeter>(printer);            // this one runs wherever there is room
  greeter.tell<&Greeter::greet>("world");               // fire and forget; handled in this order
  for (int i = 1; i < argc; ++i) greeter.tell<&Greeter::greet>(argv[i]);
  rt.run();  // returns when there is nothing left to do
} catch (const std::exception& failure) {
  std::cerr << "hello: " << failure.what() << '\n';
  return 1;
}
