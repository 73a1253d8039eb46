// libFuzzer target: any text as the journal of an unfinished run, also with the checksums of its
// lines put right, or nothing would get past them. Its sound lines must lie inside it, and what
// they say fills the plan's manifests, or is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/blob/journal.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

using mxfp4::fuzz::checksum_of;

std::string sealed_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    lines += fmt::format("{} {}\n", checksum_of(line), line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void read_progress(const std::string& text) {
  mxfp4::fuzz::only_input_errors([&] {
    const mxfp4::fuzz::MemoryFile file(text);
    const mxfp4::JournalContent content = mxfp4::read_journal(file.path());
    if (content.bytes < 0 || content.bytes > static_cast<int64_t>(text.size())) std::abort();
    if (content.bytes == 0) throw mxfp4::Error::input("no line of a journal");
    if (text[static_cast<size_t>(content.bytes) - 1] != '\n') std::abort();
    (void)mxfp4::filled(content.planned, content.files);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(mxfp4::fuzz::text_of(data, size));
  read_progress(text);
  read_progress(sealed_lines(text));
  return 0;
}
