// vectors_as_files FOLDER: the vectors as a corpus to begin with.
#include <fstream>
#include <string>

#include "http/h1/vectors.hpp"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  int number = 0;
  for (const troupe::http::vector& one : troupe::http::vectors) {
    std::ofstream(std::string(arguments[1]) + "/vector_" + std::to_string(number++),
                  std::ios::binary)
        << one.bytes;
  }
}
