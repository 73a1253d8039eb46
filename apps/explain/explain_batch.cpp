// `explain --batch`: reads JSON lines and writes JSON lines, in blocks.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "apps/explain/explain.hpp"
#include "formats/config/deployment_json.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/select.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

std::ifstream open_lines(const std::string& path) {
  std::error_code ignored;
  const bool directory = std::filesystem::is_directory(path, ignored);
  std::ifstream file(path, std::ios::binary);
  if (file && !directory) return file;
  throw Error::input(fmt::format("cannot be opened: {}", std::strerror(directory ? EISDIR : errno)))
      .in_file(path);
}

void write_out(std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error::output(fmt::format("stdout: {}", std::strerror(errno)));
  }
  text.clear();
}

}  // namespace

int explain_batch(const RuleSet& rules, const std::string& path, bool traces) {
  std::ifstream file;
  if (path != "-") file = open_lines(path);
  std::istream& lines = path == "-" ? std::cin : file;
  std::string out;
  int64_t number = 0;
  try {
    for (std::string line; std::getline(lines, line);) {
      ++number;
      out += decision_json(construct_layer(rules, parse_deployment(line)), traces) + "\n";
      if (out.size() > kBlockBytes) write_out(out);
    }
  } catch (Error& error) {
    write_out(out);
    error.add_context(fmt::format("line {}", number)).in_file(path == "-" ? "stdin" : path);
    throw;
  }
  write_out(out);
  return 0;
}

}  // namespace mxfp4
