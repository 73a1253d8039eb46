// Text for people: amounts in words, lines and tables that fit the terminal, words of a shell
// command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/human_bytes.hpp"

namespace mxfp4 {

// "1 layer", "3 layers"
[[nodiscard]] std::string count_of(uint64_t count, std::string_view what);

// "11.6 GiB in 10.2 s, 1.14 GiB/s": the bytes written, the time, and the rate of the `moved` bytes.
[[nodiscard]] std::string pace(int64_t written, int64_t moved, double seconds);

// Columns of the terminal behind a file descriptor; 80 if there is no terminal.
[[nodiscard]] size_t terminal_width(int descriptor);
// Columns that a sentence on stdout may have: 80, or as many as a wider terminal has, at most 100.
[[nodiscard]] size_t text_width();

// `text` in lines of at most `width` columns, broken at blanks, or where there is none anywhere.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, size_t width);

// Appends `text`, wrapped to text_width(), behind `first`; further lines begin with `indent`
// blanks.
void append_wrapped(std::string& out, std::string first, size_t indent, std::string_view text);

// Appends a command to copy behind `first`, broken between its parts with the shell's line
// continuation; further lines begin with `indent` blanks.
void append_command(std::string& out, const std::string& first, size_t indent,
                    const std::vector<std::string>& parts);

// Rows of equal length as aligned columns, two spaces apart; the first row is the heading, whose
// cells `bold` marks. If they do not fit on a line, the text of the last column is wrapped.
[[nodiscard]] std::string align_table(const std::vector<std::vector<std::string>>& rows,
                                      const std::function<std::string(std::string_view)>& bold);

// `text` as one word of a shell command, quoted if necessary.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace mxfp4
