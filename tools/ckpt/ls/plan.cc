// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/placement.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

// Rules for the tensors whose names match a pattern (Checkpoint::MatchTensors).
struct PlaceOption {
  std::string text;  // as given
  std::string pattern;
  Placement placement;
};

// Where each tensor of a checkpoint is placed on a mesh.
struct ChosenPlacements {
  Mesh mesh;  // the requested one, with the axes that only stored placements name, of one rank each
  std::vector<TensorInfo> tensors;
  std::vector<Placement> placements;      // each once; every axis is named
  std::vector<std::size_t> placement_of;  // of each tensor, its number in placements
  std::size_t stored_count = 0;
  std::size_t given_count = 0;
  std::size_t whole_count = 0;
  std::vector<std::string> notes;
};

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
bool IsShort(const std::vector<std::string>& texts) {
  constexpr std::size_t kTextMax = 1024;
  std::size_t size = 0;
  for (const std::string& text : texts) size += text.size();
  return size <= kTextMax;
}

class Chooser {
 public:
  Chooser(const Mesh& requested, const std::vector<PlaceOption>& options)
      : requested_(requested), options_(options) {}

  // To be called before the first Choose.
  Status MatchOptions(const Checkpoint& checkpoint);
  // Tensors in ascending order.
  void Choose(TensorInfo tensor) {
    chosen_.placement_of.push_back(PlacementOf(tensor));
    // Texts that many tensors share in the file would here be as many copies.
    tensor.placement = {};
    chosen_.tensors.push_back(std::move(tensor));
  }
  Result<ChosenPlacements> Finish() &&;

 private:
  // Why tensors have a placement.
  enum class Origin : std::uint8_t { kStored, kGiven, kNotStored, kStrange };
  struct Source {
    Origin origin = Origin::kNotStored;
    std::vector<std::string> stored{};  // the texts; else empty
    const PlaceOption* given = nullptr;
    friend auto operator<=>(const Source&, const Source&) = default;
  };

  // The number of the tensor's placement, which is made when it comes first.
  std::size_t PlacementOf(const TensorInfo& tensor);
  Source SourceOf(const TensorInfo& tensor) const;
  std::size_t Number(Source source, Placement placement);
  bool AdoptAxes(const Placement& stored);
  void AddMissingAxes();
  void CountTensors();
  void AddNotes();

  const Mesh& requested_;
  const std::vector<PlaceOption>& options_;
  std::map<std::size_t, const PlaceOption*> given_;  // by number of tensor
  ChosenPlacements chosen_;
  std::map<Source, std::size_t> numbers_;
  std::vector<Origin> origins_;                    // of each placement
  std::vector<std::vector<std::string>> missing_;  // of each placement: axes that no rule names
  MeshAxes stored_axes_;                           // that the requested mesh lacks
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

// Those that the requested mesh lacks. False if they are more than any training has.
bool Chooser::AdoptAxes(const Placement& stored) {
  constexpr std::size_t kAxesMax = 64;
  for (const std::string& axis : AxesOf(stored)) {
    const bool is_known =
        requested_.Find(axis) || std::any_of(stored_axes_.begin(), stored_axes_.end(),
                                             [&](const auto& one) { return one.first == axis; });
    if (is_known) continue;
    if (stored_axes_.size() == kAxesMax) return false;
    stored_axes_.emplace_back(axis, 1);
  }
  return true;
}

Chooser::Source Chooser::SourceOf(const TensorInfo& tensor) const {
  if (const auto given = given_.find(chosen_.tensors.size()); given != given_.end()) {
    return {.origin = Origin::kGiven, .given = given->second};
  }
  if (tensor.placement.empty()) return {.origin = Origin::kNotStored};
  if (!IsShort(tensor.placement)) return {.origin = Origin::kStrange};
  return {.origin = Origin::kStored, .stored = tensor.placement};
}

std::size_t Chooser::PlacementOf(const TensorInfo& tensor) {
  Source source = SourceOf(tensor);
  if (const auto known = numbers_.find(source); known != numbers_.end()) return known->second;
  if (source.origin == Origin::kGiven) return Number(source, source.given->placement);
  if (source.origin != Origin::kStored) return Number(source, {});
  Result<Placement> stored = ParsePlacement(source.stored);
  const bool is_ours = stored.ok() && AdoptAxes(*stored);
  const std::size_t number = Number(std::move(source), is_ours ? *std::move(stored) : Placement());
  if (!is_ours) origins_[number] = Origin::kStrange;
  return number;
}

std::size_t Chooser::Number(Source source, Placement placement) {
  const std::size_t number = chosen_.placements.size();
  chosen_.placements.push_back(std::move(placement));
  origins_.push_back(source.origin);
  numbers_.emplace(std::move(source), number);
  return number;
}

// Every rule must find its axes, and every axis its rule.
void Chooser::AddMissingAxes() {
  for (Placement& placement : chosen_.placements) {
    std::vector<std::string>& missing = missing_.emplace_back();
    const bool is_whole = placement.empty();
    const std::vector<std::string> named = AxesOf(placement);
    for (const auto& [axis, size] : chosen_.mesh.axes()) {
      if (std::find(named.begin(), named.end(), axis) != named.end()) continue;
      placement.emplace_back(Replicate{axis});
      if (!is_whole && size > 1) missing.push_back(axis);
    }
  }
}

void Chooser::CountTensors() {
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    const std::string& name = chosen_.tensors[i].name;
    const std::size_t number = chosen_.placement_of[i];
    const Placement& placement = chosen_.placements[number];
    const Origin origin = origins_[number];
    if (origin == Origin::kStored) ++chosen_.stored_count;
    if (origin == Origin::kGiven) ++chosen_.given_count;
    if (origin == Origin::kNotStored) whole_.Count(name);
    if (origin == Origin::kStrange) strange_.Count(name);
    for (const std::string& axis : missing_[number]) replicated_[axis].Count(name);
    const bool is_here = std::any_of(placement.begin(), placement.end(), [](const auto& rule) {
      return std::holds_alternative<LocalOnly>(rule);
    });
    if (is_here) here_.Count(name);
  }
  chosen_.whole_count = whole_.count() + strange_.count();
}

void Chooser::AddNotes() {
  const auto note = [&](const Tally& tally, std::string_view what) {
    if (tally.count() > 0) chosen_.notes.push_back(fmt::format("{}: {}", what, tally.ToString()));
  };
  note(whole_, "no placement is stored, so whole on every rank");
  note(strange_, "the stored placement is not a rule of Sealpoint, so whole on every rank");
  note(here_, "hold_here does not name a coordinate, so counted on every rank");
  for (const auto& [axis, tally] : replicated_) {
    note(tally, fmt::format("replicated over {}, which no rule names", axis));
  }
}

Result<ChosenPlacements> Chooser::Finish() && {
  MeshAxes axes = requested_.axes();
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
  CountTensors();
  AddNotes();
  return std::move(chosen_);
}

// "layers.*=shard(dim 0, tensor), replicate(data)". Errors: InvalidArgument.
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

// A placement as it was stored, unless an option says otherwise; whole on every rank without
// either. Errors: InvalidArgument (an option that fits no tensor, an axis that does not exist).
Result<ChosenPlacements> ChoosePlacements(const Checkpoint& checkpoint, const Mesh& requested,
                                          const std::vector<PlaceOption>& options) {
  Chooser chooser(requested, options);
  if (Status matched = chooser.MatchOptions(checkpoint); !matched.ok()) return matched;
  for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) chooser.Choose(checkpoint.tensor(i));
  return std::move(chooser).Finish();
}

// Tensors of one shape and one placement are cut alike on every rank.
struct Group {
  const TensorInfo* example = nullptr;
  const Placement* placement = nullptr;
};

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, ChosenPlacements chosen)
      : checkpoint_(checkpoint), chosen_(std::move(chosen)) {}

  Result<PlanView> Run();

 private:
  // For each group the number of a list of regions. What is requested follows from it, so ranks of
  // which it is the same, as where tensors are replicated, read the same.
  using Request = std::vector<std::size_t>;
  using Regions = std::vector<Region>;  // ascending

  void MakeGroups();
  std::size_t NumberOf(Regions regions);
  Result<Request> RequestOf(int rank);
  Request RequestOfAll();
  Status AddRank(int rank);
  Result<PlanSummary> Summarize(const Request& request);

  const Checkpoint& checkpoint_;
  ChosenPlacements chosen_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // of each tensor
  std::map<Regions, std::size_t> numbers_;
  std::vector<const Regions*> regions_;      // by number
  std::vector<std::set<Region>> requested_;  // of each group, by any rank
  std::map<Request, PlanSummary> planned_;
  PlanView view_;
};

void Planner::MakeGroups() {
  std::map<std::pair<std::size_t, Shape>, std::size_t> numbers;
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    const TensorInfo& tensor = chosen_.tensors[i];
    const std::size_t placement = chosen_.placement_of[i];
    const auto [group, is_new] = numbers.try_emplace({placement, tensor.shape}, groups_.size());
    if (is_new) groups_.push_back({&tensor, &chosen_.placements[placement]});
    group_of_.push_back(group->second);
  }
  requested_.resize(groups_.size());
}

std::size_t Planner::NumberOf(Regions regions) {
  const auto [known, is_new] = numbers_.try_emplace(std::move(regions), regions_.size());
  if (is_new) regions_.push_back(&known->first);
  return known->second;
}

Result<Planner::Request> Planner::RequestOf(int rank) {
  Request request;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto layout =
        PlaceTensor(chosen_.mesh, rank, groups_[i].example->shape, *groups_[i].placement);
    if (!layout) return Status(layout.error()).AtTensor(groups_[i].example->name);
    Regions regions;
    for (const LocalPart& part : layout->parts) regions.push_back(part.region);
    std::sort(regions.begin(), regions.end());
    requested_[i].insert(regions.begin(), regions.end());
    request.push_back(NumberOf(std::move(regions)));
  }
  return request;
}

// Each of these requests is planned once.
Result<PlanSummary> Planner::Summarize(const Request& request) {
  const auto known = planned_.find(request);
  if (known != planned_.end()) return known->second;
  ReadRequest items;
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    for (const Region& region : *regions_[request[group_of_[i]]]) {
      items.Add(chosen_.tensors[i].name, region, MutableMemoryView::PlanOnly());
    }
  }
  const Result<ReadPlan> plan = checkpoint_.Plan(items, LoadContract::Partial());
  if (!plan) return plan.error();
  return planned_.emplace(request, plan->Summary()).first->second;
}

double Ratio(std::uint64_t read, std::uint64_t requested) {
  return requested == 0 ? 0 : static_cast<double>(read) / static_cast<double>(requested);
}

void AddTo(PlanSummary& sum, const PlanSummary& one) {
  sum.items += one.items;
  sum.bytes_requested += one.bytes_requested;
  sum.bytes_read += one.bytes_read;
  sum.table_bytes_read += one.table_bytes_read;
  sum.files += one.files;
  sum.requests += one.requests;
  sum.chunks += one.chunks;
  sum.amplification = Ratio(sum.bytes_read, sum.bytes_requested);
}

Status Planner::AddRank(int rank) {
  const Result<Request> request = RequestOf(rank);
  if (!request) return request.error();
  Result<PlanSummary> summary = Summarize(*request);
  if (!summary) return std::move(summary).error();
  AddTo(view_.alone, *summary);
  view_.ranks.push_back(
      {.coordinates = chosen_.mesh.CoordinatesOf(rank).value(), .summary = *std::move(summary)});
  return {};
}

Planner::Request Planner::RequestOfAll() {
  Request request;
  for (const std::set<Region>& requested : requested_) {
    request.push_back(NumberOf(Regions(requested.begin(), requested.end())));
  }
  return request;
}

Result<PlanView> Planner::Run() {
  MakeGroups();
  for (int rank = 0; rank < chosen_.mesh.size(); ++rank) {
    if (Status status = AddRank(rank); !status.ok()) return status;
  }
  Result<PlanSummary> together = Summarize(RequestOfAll());
  if (!together) return std::move(together).error();
  view_.together = *std::move(together);
  view_.mesh = chosen_.mesh;
  view_.stored_count = chosen_.stored_count;
  view_.given_count = chosen_.given_count;
  view_.whole_count = chosen_.whole_count;
  view_.notes = std::move(chosen_.notes);
  return std::move(view_);
}

}  // namespace

Result<PlanView> ViewPlan(const Checkpoint& checkpoint, const PlanOptions& options) {
  const Result<Mesh> mesh = Mesh::Parse(options.mesh);
  if (!mesh) return Status(Code::kInvalidArgument, "--plan: " + mesh.error().message());
  if (mesh->size() > kPlanRanksMax) {
    return Status(Code::kInvalidArgument, fmt::format("--plan: more than {} ranks", kPlanRanksMax));
  }
  std::vector<PlaceOption> places;
  for (const std::string& text : options.places) {
    Result<PlaceOption> place = ParsePlaceOption(text);
    if (!place) return std::move(place).error();
    places.push_back(*std::move(place));
  }
  Result<ChosenPlacements> chosen = ChoosePlacements(checkpoint, *mesh, places);
  if (!chosen) return std::move(chosen).error();
  return Planner(checkpoint, *std::move(chosen)).Run();
}

}  // namespace sealpoint::tools::ls
