#include "tests/golden/golden_file.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lib/core/backend.hpp"
#include "lib/core/dtype.hpp"
#include "tests/testdata.hpp"

namespace mxfp4::test {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

Tensor read_tensor(const nlohmann::json& entry, const std::string& data) {
  const auto dtype = dtype_from_name(entry.at("dtype").get<std::string>());
  if (!dtype) throw std::runtime_error("unknown dtype");
  const auto dims = entry.at("shape").get<std::vector<int64_t>>();
  const auto begin = entry.at("data_offsets").at(0).get<size_t>();
  const auto end = entry.at("data_offsets").at(1).get<size_t>();
  Tensor tensor{{*dtype, Shape(dims)}, {}};
  if (begin > end || end > data.size() ||
      static_cast<int64_t>(end - begin) != tensor.spec.bytes()) {
    throw std::runtime_error("bad data_offsets");
  }
  tensor.bytes.resize(end - begin);
  if (end > begin) std::memcpy(tensor.bytes.data(), data.data() + begin, end - begin);
  return tensor;
}

}  // namespace

GoldenFile read_golden_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  uint64_t size = 0;
  if (!file || text.size() < sizeof(size)) throw std::runtime_error("cannot read " + path.string());
  std::memcpy(&size, text.data(), sizeof(size));
  if (size > text.size() - sizeof(size)) throw std::runtime_error("bad header size");
  const auto header = nlohmann::json::parse(text.substr(sizeof(size), size));
  const std::string data = text.substr(sizeof(size) + size);

  GoldenFile golden;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      golden.fields = entry.get<Fields>();
    } else {
      golden.tensors[name] = read_tensor(entry, data);
    }
  }
  return golden;
}

Tensors with_prefix(const Tensors& tensors, std::string_view prefix) {
  Tensors part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = tensor;
  }
  return part;
}

std::vector<std::filesystem::path> golden_folders() {
  std::vector<std::filesystem::path> roots = {test::testdata("golden")};
  if (const char* more = std::getenv("MXFP4_GOLDEN_DIR")) roots.emplace_back(more);
  std::vector<std::filesystem::path> folders;
  for (const auto& root : roots) {
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.is_directory() && backend_from_name(upper(entry.path().filename().string()))) {
        folders.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(folders);
  return folders;
}

std::string case_name(const std::filesystem::path& file) {
  std::string name = file.parent_path().filename().string() + "_" + file.stem().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace mxfp4::test
