// Stands in for libFuzzer where there is none: runs a target on every file of the folders and files
// that are named. A parser that takes none of them reads no further than its first check: such a
// corpus is out of date. Usage: fuzz_seek_table testdata/fuzz/fuzz_seek_table
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) files.emplace_back(argv[i]);
    if (!fs::is_directory(argv[i])) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(argv[i])) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::fprintf(stderr, "%s\n", path.c_str());  // the last line names what crashed
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs; taken:", files.size());
  for (const int64_t count : mxfp4::fuzz::taken())
    std::printf(" %lld", static_cast<long long>(count));
  std::printf("\n");
  return files.empty() || std::ranges::count(mxfp4::fuzz::taken(), 0) > 0 ? 1 : 0;
}
