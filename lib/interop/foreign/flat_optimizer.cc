// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/flat_optimizer.h"

#include <algorithm>
#include <array>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/node.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr const char* kStep = "step";
constexpr const char* kState = "state";
constexpr const char* kNumbers = "params";       // of a group
constexpr const char* kOptimizer = "optimizer";  // entry of the tree
constexpr std::uint64_t kEntryCost = 1024;       // memory of a tensor and its node, in bytes

}  // namespace

bool FlatOptimizer::IsMoment(std::string_view kind) {
  constexpr std::array<std::string_view, 6> kKinds = {
      "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

std::string FlatOptimizer::NameOfState(std::string_view parameter, std::string_view kind) {
  return StrCat(kOptimizer, ".", kState, ".", parameter, ".", kind);
}

std::optional<FlatOptimizer::Step> FlatOptimizer::StepOf(const TorchArchive& archive,
                                                         const Pickled* step) {
  if (step == nullptr) return std::nullopt;
  if (step->is(Kind::kInt)) return Step{std::to_string(step->number), {}, step->number};
  if (!step->is(Kind::kObject)) return std::nullopt;
  std::optional<ForeignTensor> tensor = TensorIn(archive, *step);
  if (!tensor || tensor->parts.empty() || ElementCount(tensor->shape).value_or(0) != 1) {
    return std::nullopt;
  }
  const ForeignPart& part = tensor->parts.front();
  std::string bytes =
      archive.file().Read(part.entry_begin + part.begin, DTypeSizeBytes(tensor->dtype));
  return Step{std::move(bytes), std::move(tensor)};
}

void FlatOptimizer::AddRank(const TorchArchive& archive, const Pickled& optimizer,
                            std::size_t groups, bool by_rank) {
  States states;
  const Pickled* const stored = Find(optimizer, kState);
  if (stored != nullptr) {
    for (const auto& [number, one] : PairsOf(*stored)) {
      if (number->is(Kind::kInt) && one->is(Kind::kMapping)) {
        states[NaturalOf(*number)] = one;
      } else {
        left_out_.insert("*");
      }
    }
  }
  CheckSteps(archive, optimizer, states, groups);
  if (first_name_.empty()) {
    first_name_ = storage::LastComponent(archive.path());
    FindKinds(states, groups);
    const Pickled* const hyper_parameters = Find(optimizer, kGroups);
    if (hyper_parameters != nullptr) AddGroups(archive, *hyper_parameters);
  }
  for (auto& [kind, flats] : moments_) {
    flats.resize(by_rank ? flats.size() + 1 : groups);
    for (std::size_t i = 0; i < groups; ++i) {
      const auto found = states.find(i);
      if (found == states.end()) InvalidValue("a group has no state, unlike in rank 0");
      AppendTo(by_rank ? flats.back() : flats[i], archive, Get(*found->second, kind));
    }
  }
}

// Files of different saves in one directory would be mixed in silence.
void FlatOptimizer::CheckSteps(const TorchArchive& archive, const Pickled& optimizer,
                               const States& states, std::size_t groups) {
  std::vector<std::optional<Step>> made;
  for (std::size_t i = 0; i < groups; ++i) {
    const auto found = states.find(i);
    made.push_back(StepOf(archive, found != states.end() ? Find(*found->second, kStep) : nullptr));
  }
  const Pickled* const stored = Find(optimizer, kGroups);
  const bool has_groups = stored != nullptr && !SequenceOf(*stored).empty();
  made.push_back(StepOf(archive, has_groups ? Find(*SequenceOf(*stored).front(), kStep) : nullptr));
  if (first_name_.empty()) {
    steps_ = std::move(made);
    return;
  }
  for (std::size_t i = 0; i < std::min(made.size(), steps_.size()); ++i) {
    if (!made[i] || !steps_[i] || made[i]->bytes == steps_[i]->bytes) continue;
    Fail(Code::kCorrupt, archive.path(), "the optimizer made another number of steps than in ",
         first_name_, ": the files are of different saves");
  }
}

// Moments of only some groups are left out: they would not fill the parameters.
void FlatOptimizer::FindKinds(const States& states, std::size_t groups) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [number, state] : states) {
    for (const auto& [name, value] : PairsOf(*state)) {
      const std::string kind = NameOf(*name);
      if (kind == kStep || value->is(Kind::kNone)) continue;
      counts[kind] += number < groups ? 1 : 0;
    }
  }
  for (const auto& [kind, count] : counts) {
    if (IsMoment(kind) && count == groups) {
      moments_[kind];
    } else {
      left_out_.insert(kind);
    }
  }
}

void FlatOptimizer::AddGroups(const TorchArchive& archive, const Pickled& groups) {
  TorchValues values(archive, files_.options(), state_);
  for (const Pickled* const group : SequenceOf(groups)) {
    numbers_.emplace_back();
    for (const Pickled* const number : SequenceOf(Get(*group, kNumbers))) {
      numbers_.back().push_back(NaturalOf(*number));
    }
    const auto position = static_cast<std::int64_t>(groups_.size());
    groups_.push_back(values.Node(*group, {kOptimizer, kGroups, position}));
    if (!KindOf(groups_.back()).empty()) InvalidValue("a parameter group has keys beside names");
  }
}

void FlatOptimizer::Put(const std::string& parameter, const std::string& kind, ForeignNode node) {
  files_.budget().Add(kEntryCost + 3 * parameter.size(), state_.path);
  parameters_[parameter].push_back({kind, std::move(node)});
}

void FlatOptimizer::Add(const std::string& parameter, const std::string& kind,
                        ForeignTensor tensor) {
  const std::string name = NameOfState(parameter, kind);
  Put(parameter, kind, TensorNode(name));
  if (tensor.dtype == DType::kNone) tensor.dtype = DType::kF32;  // no elements
  if (!state_.tensors.emplace(name, std::move(tensor)).second) {
    InvalidValue(StrCat(Printable(name), " is stored twice"));
  }
}

void FlatOptimizer::AddStep(const std::string& parameter, const std::optional<Step>& step) {
  if (!step) return;
  if (step->tensor) return Add(parameter, kStep, *step->tensor);
  Put(parameter, kStep, step->number);
}

void FlatOptimizer::NoteScaler(const Pickled& optimizer) {
  const Pickled* const is_dynamic = Find(optimizer, "dynamic_loss_scale");
  if (is_dynamic == nullptr || !is_dynamic->is(Kind::kBool) || is_dynamic->number == 0) return;
  state_.left_out.push_back({"loss_scaler", 0, "an object of DeepSpeed, with the scale", true});
}

void FlatOptimizer::AddSteps(const Names& names) {
  if (steps_.size() != names.size() + 1) {
    InvalidValue(StrCat(steps_.size() - 1, " parameter groups of the optimizer, and the shapes of ",
                        names.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::string& name : names[i]) AddStep(name, steps_[i]);
  }
}

ForeignNode FlatOptimizer::TakeNode(const Names& names) {
  for (const std::string& kind : left_out_) {
    state_.left_out.push_back({StrCat(kOptimizer, ".", kState, ".*.", kind), 0,
                               "state of the optimizer that is not known to have a part for each "
                               "parameter",
                               true});
  }
  if (groups_.empty() && parameters_.empty()) return nullptr;
  ForeignNode::Members states;
  for (const std::vector<std::string>& group : names) {
    for (const std::string& name : group) {
      const auto found = parameters_.find(name);
      if (found != parameters_.end())
        states.push_back({name, MappingNode(std::move(found->second))});
    }
  }
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    ForeignNode::List of_group;
    for (const std::uint64_t number : numbers_[i]) {
      if (number >= names.size() || !seen.insert(number).second) {
        InvalidValue(StrCat("parameters ", number, " are unknown, or in two groups"));
      }
      for (const std::string& name : names[number]) of_group.emplace_back(name);
    }
    ForeignNode::Members& members = *groups_[i].if_object();
    std::ranges::find(members, kNumbers, &ForeignNode::Member::key)->value = std::move(of_group);
  }
  return {{kState, MappingNode(std::move(states))}, {kGroups, std::move(groups_)}};
}

}  // namespace sealpoint::internal::foreign
