// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/placements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

Status UsageError(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

// At the commas outside of parentheses.
std::vector<std::string> SplitRules(std::string_view text) {
  std::vector<std::string> rules(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      rules.emplace_back();
    } else {
      rules.back().push_back(c);
    }
  }
  return rules;
}

std::vector<std::string> AxesOf(const PlacementRule& rule) {
  if (const auto* flat = std::get_if<ShardFlat>(&rule)) return flat->axes;
  return std::visit(
      [](const auto& one) -> std::vector<std::string> {
        if constexpr (requires { one.axis; }) return {one.axis};
        return {};
      },
      rule);
}

std::vector<std::string> AxesOf(const Placement& placement) {
  std::vector<std::string> axes;
  for (const PlacementRule& rule : placement) {
    for (std::string& axis : AxesOf(rule)) axes.push_back(std::move(axis));
  }
  return axes;
}

// A fact about tensors, of which the first is an example.
class Tally {
 public:
  void Count(const std::string& example) {
    if (count_++ == 0) example_ = example;
  }
  std::size_t count() const { return count_; }
  // "3 tensors, such as layers.0.weight"
  std::string ToString() const {
    if (count_ == 1) return fmt::format("1 tensor, {}", example_);
    return fmt::format("{} tensors, such as {}", count_, example_);
  }

 private:
  std::size_t count_ = 0;
  std::string example_;
};

// Rules of a training are short; what is longer is none of our rules, and takes no memory.
Result<Placement> ParseStored(const std::vector<std::string>& texts) {
  constexpr std::size_t kTextMax = 1024;
  std::size_t size = 0;
  for (const std::string& text : texts) size += text.size();
  if (size > kTextMax) return UsageError("the placement is too long");
  return ParsePlacement(texts);
}

class Chooser {
 public:
  Chooser(const Mesh& wanted, const std::vector<PlaceOption>& options)
      : wanted_(wanted), options_(options) {}

  // To be called before the first Choose.
  Status MatchOptions(const Checkpoint& checkpoint);
  // Tensors in ascending order.
  void Choose(TensorInfo tensor) {
    chosen_.placements.push_back(PlacementOf(tensor));
    // Texts that many tensors share in the file would here be as many copies.
    tensor.placement = {};
    chosen_.tensors.push_back(std::move(tensor));
  }
  Result<ChosenPlacements> Finish() &&;

 private:
  Placement PlacementOf(const TensorInfo& tensor);
  bool AdoptAxes(const Placement& stored);
  void AddMissingAxes();
  void AddNotes();

  const Mesh& wanted_;
  const std::vector<PlaceOption>& options_;
  std::map<std::size_t, const PlaceOption*> given_;  // by number of tensor
  ChosenPlacements chosen_;
  MeshAxes stored_axes_;  // that the wanted mesh lacks
  Tally whole_;
  Tally strange_;
  Tally here_;
  std::map<std::string, Tally> replicated_;  // by axis
};

Status Chooser::MatchOptions(const Checkpoint& checkpoint) {
  for (const PlaceOption& option : options_) {
    const auto tensors = checkpoint.MatchTensorNumbers({option.pattern});
    if (!tensors.ok()) {
      return UsageError(fmt::format("--place {}: {}", option.text, tensors.error().message()));
    }
    for (const std::size_t tensor : *tensors) given_[tensor] = &option;
  }
  return {};
}

// Those that the wanted mesh lacks. False if they are more than any training has.
bool Chooser::AdoptAxes(const Placement& stored) {
  constexpr std::size_t kAxesMax = 64;
  for (const std::string& axis : AxesOf(stored)) {
    const bool is_known =
        wanted_.Find(axis) || std::any_of(stored_axes_.begin(), stored_axes_.end(),
                                          [&](const auto& one) { return one.first == axis; });
    if (is_known) continue;
    if (stored_axes_.size() == kAxesMax) return false;
    stored_axes_.emplace_back(axis, 1);
  }
  return true;
}

Placement Chooser::PlacementOf(const TensorInfo& tensor) {
  if (const auto given = given_.find(chosen_.tensors.size()); given != given_.end()) {
    ++chosen_.given_count;
    return given->second->placement;
  }
  Result<Placement> stored = ParseStored(tensor.placement);
  if (stored.ok() && !stored->empty() && AdoptAxes(*stored)) {
    ++chosen_.stored_count;
    return *std::move(stored);
  }
  ++chosen_.whole_count;
  stored.ok() ? whole_.Count(tensor.name) : strange_.Count(tensor.name);
  return {};
}

// Every rule must find its axes, and every axis its rule.
void Chooser::AddMissingAxes() {
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    Placement& placement = chosen_.placements[i];
    const bool is_whole = placement.empty();
    const std::vector<std::string> named = AxesOf(placement);
    for (const auto& [axis, size] : chosen_.mesh.axes()) {
      if (std::find(named.begin(), named.end(), axis) != named.end()) continue;
      placement.push_back(Replicate{axis});
      if (!is_whole && size > 1) replicated_[axis].Count(chosen_.tensors[i].name);
    }
    const bool is_here = std::any_of(placement.begin(), placement.end(), [](const auto& rule) {
      return std::holds_alternative<HoldHere>(rule);
    });
    if (is_here) here_.Count(chosen_.tensors[i].name);
  }
}

void Chooser::AddNotes() {
  const auto note = [&](const Tally& tally, std::string_view what) {
    if (tally.count() > 0) chosen_.notes.push_back(fmt::format("{}: {}", what, tally.ToString()));
  };
  note(whole_, "no placement is stored, so whole on every rank");
  note(strange_, "the placement is none of our rules, so whole on every rank");
  note(here_, "hold_here does not say where, so counted on every rank");
  for (const auto& [axis, tally] : replicated_) {
    note(tally, fmt::format("replicated over {}, which no rule names", axis));
  }
}

Result<ChosenPlacements> Chooser::Finish() && {
  MeshAxes axes = wanted_.axes();
  axes.insert(axes.end(), stored_axes_.begin(), stored_axes_.end());
  Result<Mesh> mesh = Mesh::Create(std::move(axes));
  if (!mesh.ok()) return mesh.error();
  chosen_.mesh = *std::move(mesh);
  for (const PlaceOption& option : options_) {
    for (const std::string& axis : AxesOf(option.placement)) {
      if (chosen_.mesh.Find(axis)) continue;
      return UsageError(fmt::format("--place {}: the mesh has no axis {}", option.text, axis));
    }
  }
  AddMissingAxes();
  AddNotes();
  return std::move(chosen_);
}

}  // namespace

Result<PlaceOption> ParsePlaceOption(const std::string& text) {
  // Rules have no '=', names may.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    return UsageError(fmt::format("--place {}: not of the form PATTERN=RULE, RULE", text));
  }
  Result<Placement> placement = ParsePlacement(SplitRules(text.substr(equals + 1)));
  if (!placement.ok()) {
    return UsageError(fmt::format("--place {}: {}", text, placement.error().message()));
  }
  return PlaceOption{
      .text = text, .pattern = text.substr(0, equals), .placement = *std::move(placement)};
}

Result<ChosenPlacements> ChoosePlacements(const Checkpoint& checkpoint, const Mesh& wanted,
                                          const std::vector<PlaceOption>& options) {
  Chooser chooser(wanted, options);
  if (Status matched = chooser.MatchOptions(checkpoint); !matched.ok()) return matched;
  for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) chooser.Choose(checkpoint.tensor(i));
  return std::move(chooser).Finish();
}

}  // namespace sealpoint::tools
