// The NAME of `list WHAT NAME`: which rows of a table are shown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mxfp4 {

class NameFilter {
 public:
  // An empty name takes every row.
  explicit NameFilter(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  // Whether the row with these names is shown: one of them is the name, in large or small letters,
  // or lies in the family of that name ("flashinfer/trtllm" in "flashinfer"). Remembers the row.
  [[nodiscard]] bool takes(const std::vector<std::string_view>& names);

  // Throws Error::usage with the nearest names unless a row was taken. "unknown <what> 'NAME'";
  // `where` goes on, and `table` is what `list` calls all of them.
  void require_taken(std::string_view what, std::string_view where, std::string_view table) const;

 private:
  std::string name_;
  bool taken_ = false;
  std::vector<std::string> others_;
};

}  // namespace mxfp4
