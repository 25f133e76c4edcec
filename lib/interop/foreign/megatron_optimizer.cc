// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/megatron_optimizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "lib/convert/element_converter.h"
#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/torch_legacy.h"
#include "lib/interop/foreign/torch_values.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::uint64_t kSampleElements = 1024;
constexpr std::uint64_t kMomentCost = 512;  // memory of a rank's part of a moment, in bytes

// The elements are one range of a file.
bool IsDense(const ForeignTensor& tensor) {
  return tensor.parts.size() == 1 && !tensor.parts.front().strides &&
         !tensor.parts.front().flips_sign;
}

std::string Elements(const SourceFile& file, const ForeignTensor& tensor, std::uint64_t first,
                     std::uint64_t count) {
  const ForeignPart& part = tensor.parts.front();
  const std::uint64_t size = DTypeSizeBytes(tensor.dtype);
  return file.Read(part.entry_begin + part.begin + first * size, count * size);
}

// Whether the fp32 copy of a parameter, rounded, begins and ends with the elements of the model's
// tensor.
bool IsCopyOf(const SourceFile& main_file, const ForeignTensor& main, const SourceFile& file,
              const ForeignTensor& weight) {
  if (main.shape != weight.shape || main.dtype != DType::kF32) return false;
  if (!IsDense(main) || !IsDense(weight)) return false;
  const auto converter =
      convert::ElementConverter::Make(main.dtype, {weight.dtype, Rounding::kNearestEven});
  if (!converter) return false;
  const std::uint64_t all = ElementCount(weight.shape).value();
  const std::uint64_t count = std::min(all, kSampleElements);
  for (const std::uint64_t first : {std::uint64_t{0}, all - count}) {
    const std::string source = Elements(main_file, main, first, count);
    const std::string expected = Elements(file, weight, first, count);
    std::string rounded(expected.size(), '\0');
    const auto stride = static_cast<std::int64_t>(DTypeSizeBytes(weight.dtype));
    converter->Convert(reinterpret_cast<const std::byte*>(source.data()), 4,
                       reinterpret_cast<std::byte*>(rounded.data()), stride, count);
    if (rounded != expected) return false;
  }
  return true;
}

}  // namespace

template <typename Step>
void MegatronOptimizer::Try(const std::string& path, const Step& step) {
  if (!reason_.empty()) return;
  try {
    step();
  } catch (const std::invalid_argument& error) {
    reason_ = StrCat(path, ": ", error.what());
    ranks_.clear();
    parameters_.clear();
  }
}

void MegatronOptimizer::AddRank(const Model& model) {
  const std::string& path = model.archive.path();
  Try(path, [&] {
    if (first_path_.empty()) first_path_ = path;
    Rank rank{.path = path};
    ReadGroups(model, Get(model.archive.root(), "optimizer"), rank);
    ranks_.push_back(std::move(rank));
  });
}

// The parameters of a group have the order of the model. The weights and the biases and norms are
// in different groups.
void MegatronOptimizer::ReadGroups(const Model& model, const Pickled& optimizer, Rank& rank) {
  const Pickled& inner = Get(optimizer, "optimizer");
  const PickledItems& stored = SequenceOf(Get(inner, "param_groups"));
  const PickledItems& mains = SequenceOf(Get(optimizer, "fp32_from_fp16_params"));
  const bool fits =
      stored.size() == mains.size() && stored.size() == group_count_.value_or(stored.size());
  if (!fits) InvalidValue("the parameter groups differ in number");
  group_count_ = stored.size();
  std::map<std::uint64_t, const Pickled*> states;
  for (const auto& [number, one] : PairsOf(Get(inner, "state"))) states[NaturalOf(*number)] = one;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    groups.push_back(
        {SequenceOf(*mains[i]), SequenceOf(Get(*stored[i], "params")), Find(*stored[i], "step")});
    if (groups.back().mains.size() != groups.back().numbers.size()) {
      InvalidValue("a parameter has no fp32 copy beside the model's tensor");
    }
  }
  const SourceFile& file = model.archive.file();
  for (const std::string& name : model.names) {
    if (name.ends_with("inv_freq")) continue;  // no parameter
    const ForeignTensor& weight = model.tensors.at(name);
    Group* found = nullptr;
    for (Group& group : groups) {
      if (group.used == group.mains.size()) continue;
      if (!group.next) group.next = TensorIn(model.archive, *group.mains[group.used]);
      if (!group.next || !IsCopyOf(file, *group.next, file, weight)) continue;
      if (found != nullptr) InvalidValue(StrCat("two fp32 copies fit ", Printable(name)));
      found = &group;
    }
    if (found == nullptr) InvalidValue(StrCat("no fp32 copy fits ", Printable(name)));
    const auto state = states.find(NaturalOf(*found->numbers[found->used++]));
    found->next.reset();
    Place place{.group = static_cast<std::size_t>(found - groups.data()),
                .step = FlatOptimizer::StepOf(model.archive, found->step)};
    if (state == states.end()) InvalidValue(StrCat(Printable(name), " has no state"));
    AddState(model.archive, name, weight, *state->second, std::move(place), rank);
  }
  for (const Group& group : groups) {
    if (group.used < group.mains.size()) InvalidValue("a fp32 copy fits no tensor of the model");
  }
}

void MegatronOptimizer::AddState(const TorchArchive& archive, const std::string& name,
                                 const ForeignTensor& weight, const Pickled& state, Place place,
                                 Rank& rank) {
  const Pickled* const step = Find(state, "step");
  if (step != nullptr) place.step = FlatOptimizer::StepOf(archive, step);
  for (const auto& [key, value] : PairsOf(state)) {
    const std::string kind = NameOf(*key);
    if (kind == "step" || value->is(Kind::kNone)) continue;
    std::optional<ForeignTensor> moment;
    if (FlatOptimizer::IsMoment(kind)) moment = TensorIn(archive, *value);
    if (!moment) {
      optimizer_.LeaveOut(kind);
      continue;
    }
    AddMoment(name, kind, weight, *std::move(moment), place, rank);
  }
  rank.places.emplace(name, std::move(place));
}

void MegatronOptimizer::AddMoment(const std::string& name, const std::string& kind,
                                  const ForeignTensor& weight, ForeignTensor moment, Place& place,
                                  Rank& rank) {
  if (moment.shape != weight.shape || !IsDense(moment)) {
    InvalidValue(StrCat(kind, " of ", Printable(name), " has the shape ",
                        ShapeToString(moment.shape), ", expected ", ShapeToString(weight.shape)));
  }
  files_.budget().Add(kMomentCost + 4 * name.size(), rank.path);
  rank.tensors.emplace(FlatOptimizer::NameOfState(name, kind), std::move(moment));
  place.kinds.push_back(kind);
}

void MegatronOptimizer::Join(const std::string& name, const std::string& global,
                             const Division& division) {
  if (ranks_.empty()) return;
  Try(ranks_.back().path, [&] {
    const auto found = ranks_.front().places.find(name);
    if (found == ranks_.front().places.end()) return;
    Parameter parameter{.name = global, .place = found->second};
    for (const Rank& rank : ranks_) {
      const Place& other = rank.places.at(name);
      const bool fits = other.group == parameter.place.group &&
                        other.kinds == parameter.place.kinds &&
                        other.step.has_value() == parameter.place.step.has_value() &&
                        (!other.step || other.step->bytes == parameter.place.step->bytes);
      if (!fits) InvalidValue(StrCat("the ranks have other state or steps of ", Printable(name)));
    }
    for (const std::string& kind : parameter.place.kinds) {
      const std::string key = FlatOptimizer::NameOfState(name, kind);
      if (division.cut == Cut::kNone) {
        for (const Rank& rank : ranks_) CheckSame(key, rank);
        parameter.moments.push_back(ranks_.front().tensors.at(key));
      } else {
        parameter.moments.push_back(Joined(key, ranks_, division, files_));
      }
    }
    parameters_.push_back(std::move(parameter));
  });
}

// All ranks have this tensor whole.
void MegatronOptimizer::CheckSame(const std::string& key, const Rank& rank) {
  if (AreSame(ranks_.front().tensors.at(key), rank.tensors.at(key), files_)) return;
  InvalidValue(StrCat(Printable(key), " differs from rank 0, which has it whole"));
}

ForeignNode MegatronOptimizer::TakeNode() {
  ForeignNode node;
  Try(first_path_, [&] {
    const std::unique_ptr<TorchArchive> archive = OpenTorchShard(first_path_, files_);
    const Pickled& groups = Get(Get(Get(archive->root(), "optimizer"), "optimizer"), kGroups);
    // All names of a group are at its first number in the first file.
    FlatOptimizer::Names names;
    std::vector<std::optional<std::uint64_t>> firsts;
    for (const Pickled* const group : SequenceOf(groups)) {
      firsts.emplace_back();
      for (const Pickled* const number : SequenceOf(Get(*group, "params"))) {
        if (!firsts.back()) firsts.back() = NaturalOf(*number);
        names.emplace_back();
      }
    }
    for (const Parameter& parameter : parameters_) {
      const auto& first = firsts.at(parameter.place.group);
      if (!first || *first >= names.size()) InvalidValue("a parameter group is empty");
      names[*first].push_back(parameter.name);
    }
    optimizer_.AddGroups(*archive, groups);
    for (Parameter& parameter : parameters_) {
      for (std::size_t i = 0; i < parameter.moments.size(); ++i) {
        optimizer_.Add(parameter.name, parameter.place.kinds[i], std::move(parameter.moments[i]));
      }
      optimizer_.AddStep(parameter.name, parameter.place.step);
    }
    node = optimizer_.TakeNode(names);
  });
  return node;
}

}  // namespace sealpoint::internal::foreign
