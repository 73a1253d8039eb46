#include "formats/output/unpack_output.hpp"

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
  directory_.discard();
  journal_->remove();
}

std::string UnpackOutput::commit() {
  journal_->ready();
  const std::string note = directory_.publish();
  committed_ = true;
  journal_->moved(home());
  const std::string left = journal_->remove();
  return note.empty() ? left : note;
}

}  // namespace mxfp4
