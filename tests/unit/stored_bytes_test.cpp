// Parts of a loaded matrix, read from the file, are those that the whole assembly makes.
#include "formats/loader/stored_bytes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "formats/checkpoint/safetensors_source.hpp"
#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kStoredRows = 128;

// A file with one tensor of 128 rows of 3 bytes.
std::filesystem::path write_matrix(const std::vector<std::byte>& bytes) {
  const std::filesystem::path path = test::scratch_path("stored_bytes.safetensors");
  std::string header = R"({"x":{"dtype":"U8","shape":[128,3],"data_offsets":[0,384]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t size = header.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof(size));
  out << header;
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return path;
}

// Rows 32 to 63 of gate and of up, each half padded to 48 rows of 4 bytes.
Assembly sliced(bool alternating) {
  Assembly assembly;
  assembly.stored = {kStoredRows, 3};
  assembly.loaded = {96, 4};
  assembly.fill = std::byte{1};
  assembly.rects = alternating ? std::vector<CopyRect>{{64, 0, 32, 3, 0, 2}, {65, 0, 32, 3, 48, 2}}
                               : std::vector<CopyRect>{{32, 0, 32, 3, 0}, {96, 0, 32, 3, 48}};
  return assembly;
}

TEST(StoredBytes, PartsAreThoseOfTheWhole) {
  std::vector<std::byte> in;
  for (int64_t i = 0; i < kStoredRows * 3; ++i) in.push_back(static_cast<std::byte>(i * 7 + 2));
  const std::filesystem::path path = write_matrix(in);
  const auto source = open_safetensors(path);
  const std::vector<Extent> stored = {{0, 0, kStoredRows * 3}};
  for (const bool alternating : {false, true}) {
    const Assembly assembly = sliced(alternating);
    std::vector<std::byte> whole(384);
    assembly.forward(in, whole);
    StoredBytes reader;
    for (int64_t begin = 0; begin < 384; begin += 37) {
      for (int64_t end = begin + 1; end <= 384; end += 53) {
        std::vector<std::byte> part(static_cast<size_t>(end - begin), std::byte{0xEE});
        reader.read(*source, assembly, stored, begin, end, part.data());
        EXPECT_EQ(std::memcmp(part.data(), whole.data() + begin, part.size()), 0)
            << alternating << " " << begin << " " << end;
      }
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace mxfp4
