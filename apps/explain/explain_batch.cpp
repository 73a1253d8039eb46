// `explain --batch`: reads JSON lines and writes JSON lines, in blocks.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "apps/explain/explain.hpp"
#include "formats/config/deployment_json.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/select.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr size_t kMaxLineBytes = 1 << 20;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File open_lines(const std::string& path) {
  if (path == "-") return File(stdin);
  std::error_code ignored;
  const bool directory = std::filesystem::is_directory(path, ignored);
  File file(directory ? nullptr : std::fopen(path.c_str(), "rb"));
  if (!file) {
    throw Error::input(
        fmt::format("cannot be opened: {}", std::strerror(directory ? EISDIR : errno)))
        .in_file(path);
  }
  return file;
}

// Calls use(line) for each line, without its newline; the last line need not have one.
template <class Use>
void for_each_line(std::FILE* file, Use&& use) {
  std::string text;
  size_t begin = 0;
  bool more = true;
  while (more) {
    text.erase(0, begin);
    begin = 0;
    const size_t old_size = text.size();
    text.resize(old_size + kBlockBytes);
    const size_t read = std::fread(text.data() + old_size, 1, kBlockBytes, file);
    text.resize(old_size + read);
    if (std::ferror(file) != 0) throw Error::input("read error");
    more = read > 0;
    size_t end;
    while ((end = text.find('\n', std::max(begin, old_size))) != std::string::npos) {
      use(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    if (!more && begin < text.size()) use(std::string_view(text).substr(begin));
    if (text.size() - begin > kMaxLineBytes) throw Error::input("a line longer than 1 MiB");
  }
}

void write_out(std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw Error::output(fmt::format("stdout: {}", std::strerror(errno)));
  }
  text.clear();
}

}  // namespace

int explain_batch(const RuleSet& rules, const std::string& path, bool traces) {
  const File file = open_lines(path);
  const std::string name = path == "-" ? "stdin" : path;
  std::string out;
  int64_t number = 0;
  const auto answer = [&](std::string_view line) {
    ++number;
    out += decision_json(construct_layer(rules, parse_deployment(line)), traces);
    out += '\n';
    if (out.size() > kBlockBytes) write_out(out);
  };
  try {
    for_each_line(file.get(), answer);
  } catch (Error& error) {
    write_out(out);
    error.add_context(fmt::format("line {}", number)).in_file(name);
    throw;
  }
  write_out(out);
  if (std::fflush(stdout) != 0)
    throw Error::output(fmt::format("stdout: {}", std::strerror(errno)));
  return 0;
}

}  // namespace mxfp4
