#include "formats/conversion/compare_rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "formats/conversion/first_difference.hpp"
#include "formats/conversion/model_directory.hpp"
#include "formats/decision/blob_revision.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/buffer.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;
using Described = std::map<std::string, std::string>;  // by a tensor's name: its type and shape

std::string describe(const TensorSpec& spec) {
  return fmt::format("{} {}", dtype_name(spec.dtype), spec.shape.to_string());
}

// The bytes of a file, of which some are compared after others.
class StoredFile {
 public:
  explicit StoredFile(const fs::path& path)
      : map_(in_file(path.string(), [&] { return MappedFile(path); })) {}

  [[nodiscard]] ConstBytes bytes() const { return map_.bytes(); }

  // The position, in the bytes of this comparison, of the first that differs from `made`; empty if
  // none does.
  std::optional<size_t> next_differs(ConstBytes made) {
    const ConstBytes left = map_.bytes().subspan(at_);
    const ConstBytes stored = left.first(std::min(left.size(), made.size()));
    const auto differs = first_difference(made, stored);
    release_pages(stored);
    at_ += stored.size();
    return differs;
  }
  [[nodiscard]] bool at_end() const { return at_ == map_.bytes().size(); }

 private:
  MappedFile map_;
  size_t at_ = 0;
};

// Names on one side only. Returns the names that both have.
std::set<std::string> compare_names(const RestPlan& plan, const fs::path& directory,
                                    const Manifest& manifest, Findings& findings) {
  std::set<std::string> planned;
  std::set<std::string> both;
  for (const ManifestFile& file : plan.planned()) planned.insert(file.name);
  for (const ManifestFile& file : manifest.rest) {
    if (planned.erase(file.name) > 0) {
      both.insert(file.name);
    } else {
      findings.push_back(fmt::format("{}: the input has no such file or tensors for it",
                                     (directory / file.name).string()));
    }
  }
  for (const std::string& name : planned) {
    findings.push_back(fmt::format("{}: missing, the input has it", (directory / name).string()));
  }
  return both;
}

// The tensors in the stored files of the plan.
Described stored_tensors(const RestPlan& plan, const fs::path& directory,
                         const std::set<std::string>& names) {
  Described found;
  for (const RestFile& file : plan.files) {
    if (!names.contains(file.name)) continue;
    const StoredFile stored(directory / file.name);
    const SafetensorsHeader header = in_file((directory / file.name).string(), [&] {
      return parse_safetensors_header(stored.bytes(), static_cast<int64_t>(stored.bytes().size()));
    });
    for (const SafetensorsTensor& tensor : header.tensors) {
      found[tensor.name] = describe(tensor.spec);
    }
  }
  return found;
}

void compare_descriptions(const Source& source, const RestPlan& plan, Described stored,
                          const fs::path& directory, Findings& findings) {
  const auto add = [&](const std::string& name, const std::string& here, const std::string& input) {
    findings.push_back(
        fmt::format("{}: {}: {} here, the input has {}", directory.string(), name, here, input));
  };
  for (const RestFile& file : plan.files) {
    for (size_t index : file.tensors) {
      const SourceTensor& tensor = source.tensors()[index];
      const std::string wanted = describe(tensor.spec);
      const auto found = stored.extract(tensor.name);
      if (found.empty()) {
        add(tensor.name, "nothing", wanted);
      } else if (found.mapped() != wanted) {
        add(tensor.name, found.mapped(), wanted);
      }
    }
  }
  for (const auto& [name, here] : stored) add(name, here, "nothing");
}

// Compares a file of tensors: of each tensor, the first byte that differs.
void compare_tensors(Source& source, const RestFile& plan, const fs::path& path, Buffer& buffer,
                     const RunHooks& hooks, Findings& findings) {
  StoredFile stored(path);
  const ConstBytes header = std::as_bytes(std::span(plan.header));
  const auto size = header.size() + static_cast<size_t>(plan.data_bytes);
  if (stored.next_differs(header) || stored.bytes().size() != size) {
    findings.push_back(
        fmt::format("{}: its header is not the one for the input's tensors", path.string()));
    return;
  }
  for (size_t index : plan.tensors) {
    size_t begin = 0;
    std::optional<size_t> differs;
    read_tensor(source, index, buffer, [&](ConstBytes piece) {
      hooks.check_stop();
      const auto position = stored.next_differs(piece);
      if (position && !differs) differs = begin + *position;
      begin += piece.size();
    });
    if (differs) {
      findings.push_back(fmt::format("{}: {}: byte {} is not the input's", path.string(),
                                     source.tensors()[index].name, *differs));
    }
  }
}

void compare_side(const SideFile& plan, const fs::path& path, Findings& findings) {
  StoredFile stored(path);
  const std::string text = read_side(plan);
  const auto differs = stored.next_differs(std::as_bytes(std::span(text)));
  if (!differs && stored.at_end()) return;
  findings.push_back(fmt::format("{}: byte {} is not what convert makes of the input",
                                 path.string(), differs.value_or(text.size())));
}

}  // namespace

Findings compare_rest(const std::shared_ptr<Source>& source, CheckpointOptions options,
                      const fs::path& model_directory, const Manifest& manifest,
                      const RunHooks& hooks) {
  Findings findings;
  if (manifest.rest.empty()) return findings;  // made without --include-rest
  options.family = manifest.target.family;
  const OpenedCheckpoint input = open_checkpoint(source, options, rules_of_blob(manifest));
  std::vector<std::string> ignored;  // convert has warned
  const RestPlan plan = plan_model_directory(input, ignored);
  const std::set<std::string> names = compare_names(plan, model_directory, manifest, findings);
  compare_descriptions(*source, plan, stored_tensors(plan, model_directory, names), model_directory,
                       findings);
  const bool same_tensors = findings.empty();
  Buffer buffer;
  for (const RestFile& file : plan.files) {
    if (!same_tensors || !names.contains(file.name)) continue;
    compare_tensors(*source, file, model_directory / file.name, buffer, hooks, findings);
  }
  for (const SideFile& file : plan.side) {
    if (names.contains(file.name)) compare_side(file, model_directory / file.name, findings);
  }
  source->check_unchanged();
  return findings;
}

}  // namespace mxfp4
