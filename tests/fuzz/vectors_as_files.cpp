// vectors_as_files FOLDER: writes the vectors as files, which are the first corpus of a fuzzer.
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
