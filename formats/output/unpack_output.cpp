#include "formats/output/unpack_output.hpp"

#include <sys/stat.h>

#include <exception>
#include <new>

#include "formats/output/observe.hpp"

namespace mxfp4 {

UnpackOutput::UnpackOutput(const std::filesystem::path& path,
                           const std::vector<std::filesystem::path>& inputs, bool replace,
                           int64_t layer_files, int64_t bytes, const std::function<void()>& between)
    : directory_(path, inputs) {
  const Seen seen = observe(directory_, {});
  const Answer& answer = answer_to(seen.there, replace ? Asked::kUnpackForce : Asked::kUnpack);
  if (answer.does == Does::kRefuse) throw refusal(answer, seen.named);
  if (answer.does == Does::kReplace) directory_.replace(between);
  directory_.reserve(bytes);
  journal_ = std::make_unique<Journal>(home(), journal_name({}));
  try {
    JournalHead head;
    head.plan = kUnpackPlan;
    head.layer_files = layer_files;
    journal_->begin(head);
  } catch (...) {
    journal_->remove();
    throw;
  }
}

UnpackOutput::~UnpackOutput() {
  if (committed_) return;
  discard();
  journal_->remove();
}

void UnpackOutput::writes(const AtomicFile& file) {
  struct stat status {};
  if (fstat(file.descriptor(), &status) != 0) return;
  written_.emplace_back(file.target().lexically_relative(home().path()), file_state(status));
}

// By what this run wrote, not by what files hold: a checkpoint's config.json shows nobody whose
// it is.
void UnpackOutput::discard() const noexcept {
  try {
    for (const auto& [name, state] : written_) {
      if (home().state(name) == state) home().remove(name);
    }
    home().remove_empty_folders();
  } catch (const std::exception&) {
    // The user has to know why the run failed, not that cleaning up failed, too.
  }
}

std::string UnpackOutput::commit() {
  directory_.require_in_place();
  journal_->ready();
  std::string note = directory_.publish();
  committed_ = true;
  // The result is there, whatever fails from here on.
  try {
    journal_->moved(home());
    const std::string left = journal_->remove();
    if (note.empty()) note = left;
  } catch (const std::bad_alloc&) {
    if (note.empty()) note = "out of memory: the journal of this run remains";
  }
  return note;
}

}  // namespace mxfp4
