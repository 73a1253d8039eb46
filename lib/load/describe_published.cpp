#include "lib/load/describe_published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kShardEnd = ".safetensors";

// A tensor of a layer: its expert, or -1, and the rest of its name.
struct Member {
  int64_t expert = -1;
  std::string_view tail;
  size_t tensor = 0;
};

// The members of every layer, in the order of `tensors`.
class Membership {
 public:
  explicit Membership(const ModelLayers& model) : members_(model.layers.size()) {
    for (size_t i = 0; i < model.layers.size(); ++i) by_prefix_.emplace(model.layers[i].prefix, i);
  }

  // The layer whose prefix begins the name, if there is one; sets `member`.
  [[nodiscard]] std::optional<size_t> find(std::string_view name, Member& member) const {
    for (size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
         dot = name.rfind('.', dot - 1)) {
      const auto found = by_prefix_.find(name.substr(0, dot));
      if (found == by_prefix_.end()) continue;
      member.tail = name.substr(dot + 1);
      const size_t end = member.tail.find('.');
      const auto expert =
          end == std::string_view::npos ? std::nullopt : parse_index(member.tail.substr(0, end));
      member.expert = expert.value_or(-1);
      if (expert) member.tail.remove_prefix(end + 1);
      return found->second;
    }
    return std::nullopt;
  }

  void add(size_t layer, const Member& member) { members_[layer].push_back(member); }
  [[nodiscard]] const std::vector<Member>& of(size_t layer) const { return members_[layer]; }

 private:
  std::unordered_map<std::string_view, size_t> by_prefix_;
  std::vector<std::vector<Member>> members_;
};

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The tensors of each expert, or the layer's own behind -1.
using ByExpert = std::map<int64_t, std::vector<Member>>;

// Sorts `own` as the tails of `first` are; false if they are not the same, or of other types
// or shapes.
bool put_in_order(std::vector<Member>& own, const std::vector<Member>& first,
                  const std::vector<NamedTensor>& tensors) {
  if (own.size() != first.size()) return false;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto found = std::find_if(own.begin() + static_cast<std::ptrdiff_t>(i), own.end(),
                                    [&](const Member& m) { return m.tail == first[i].tail; });
    if (found == own.end() || tensors[found->tensor].spec != tensors[first[i].tensor].spec) {
      return false;
    }
    std::iter_swap(found, own.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return true;
}

void add_run(std::vector<PublishedRun>& runs, std::string_view file) {
  if (runs.empty() || runs.back().file != file) runs.push_back({std::string(file), 0});
  ++runs.back().tensors;
}

std::optional<PublishedLayer> form_of(const std::vector<Member>& members,
                                      const std::vector<NamedTensor>& tensors) {
  ByExpert experts;
  for (const Member& member : members) experts[member.expert].push_back(member);
  if (experts.empty()) return std::nullopt;
  PublishedLayer form;
  const bool stacked = experts.begin()->first < 0;
  if (stacked && experts.size() > 1) return std::nullopt;
  if (!stacked) form.experts = std::ssize(experts);
  const std::vector<Member> first = experts.begin()->second;
  for (const Member& member : first) {
    form.tensors.push_back({std::string(member.tail), tensors[member.tensor].spec});
  }
  int64_t next = 0;
  for (auto& [expert, own] : experts) {
    if (!stacked && expert != next++) return std::nullopt;
    if (!put_in_order(own, first, tensors)) return std::nullopt;
    for (const Member& member : own) add_run(form.runs, file_name(tensors[member.tensor].file));
  }
  const bool shards = std::ranges::all_of(
      form.runs, [](const PublishedRun& run) { return run.file.ends_with(kShardEnd); });
  if (!shards) form.runs.clear();
  return form;
}

// Whether a tensor that is not loaded is one of the style's: a bias, or an input scale.
std::optional<Field> ignored_field(const ModelLayers& model, std::string_view name) {
  for (const StyleRow& row : style_rows()) {
    if (row.style != model.style || row.loader != model.loader) continue;
    if (const auto parsed = parse_expert_name(row, name)) return parsed->field;
  }
  return std::nullopt;
}

}  // namespace

void describe_published(ModelLayers& model, const std::vector<NamedTensor>& tensors) {
  Membership membership(model);
  std::vector<bool> rest(tensors.size(), false);
  for (const size_t index : model.rest) rest[index] = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Member member;
    const auto layer = membership.find(tensors[i].name, member);
    if (!layer) continue;
    member.tensor = i;
    if (!rest[i]) {
      membership.add(*layer, member);
    } else if (const auto field = ignored_field(model, tensors[i].name)) {
      model.left_out.insert(*field == Field::kBias ? "bias" : "input_scale");
    }
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    std::optional<PublishedLayer>& published = model.layers[i].published;
    published = form_of(membership.of(i), tensors);
    if (published) published->intermediate_size = model.layers[i].dims.intermediate_size;
  }
}

std::vector<NamedTensor> published_tensors(std::string_view prefix, const PublishedLayer& layer) {
  std::vector<NamedTensor> tensors;
  auto run = layer.runs.begin();
  int64_t left = run == layer.runs.end() ? 0 : run->tensors;
  for (int64_t expert = 0; expert < std::max<int64_t>(layer.experts, 1); ++expert) {
    for (const PublishedTensor& each : layer.tensors) {
      while (run != layer.runs.end() && left == 0) {
        left = ++run == layer.runs.end() ? 0 : run->tensors;
      }
      if (!layer.runs.empty() && run == layer.runs.end()) {
        throw Error::input(fmt::format("{}: more tensors than its files have", prefix));
      }
      tensors.push_back({layer.experts == 0 ? fmt::format("{}.{}", prefix, each.tail)
                                            : fmt::format("{}.{}.{}", prefix, expert, each.tail),
                         each.spec, layer.runs.empty() ? std::string() : run->file});
      if (!layer.runs.empty()) --left;
    }
  }
  if (left != 0 || (run != layer.runs.end() && std::next(run) != layer.runs.end())) {
    throw Error::input(fmt::format("{}: fewer tensors than its files have", prefix));
  }
  return tensors;
}

}  // namespace mxfp4
