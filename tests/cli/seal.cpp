// Reads the JSON of a manifest from standard input and writes it with the checksum that ends a
// manifest, so that tests can lie in what comes before it.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/blob/manifest.hpp"

int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  std::cout << mxfp4::seal_json(nlohmann::ordered_json::parse(text));
  return 0;
}
