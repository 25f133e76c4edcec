// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/deepspeed.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/flat.h"
#include "lib/interop/foreign/flat_optimizer.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/others.h"
#include "lib/interop/foreign/torch_legacy.h"
#include "lib/interop/foreign/torch_values.h"
#include "lib/storage/path.h"

// Directories of DeepSpeed with ZeRO stage 1, 2 or 3. Each data-parallel rank stores its partition
// of the flattened fp32 weights; files of the model store names, shapes and buffers. The weights
// are those that DeepSpeed's zero_to_fp32.py computes.

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::string_view kOfRank = "zero_pp_rank_";
constexpr std::string_view kOfFirstModelRank = "mp_rank_00";
constexpr std::string_view kBf16 = "bf16_";
constexpr std::string_view kPartitionEnd = "_optim_states.pt";
constexpr std::string_view kModelEnd = "_model_states.pt";
constexpr std::uint64_t kTagBytesMax = 256;

bool IsPartition(const SourceEntry& entry) {
  return entry.is_file && entry.name.ends_with(kPartitionEnd) &&
         entry.name.find(kOfRank) != std::string::npos;
}

bool IsModel(std::string_view name) { return name.ends_with("model_states.pt"); }

// A universal checkpoint has a directory of each parameter in place of the ranks' partitions.
bool IsUniversal(const std::vector<SourceEntry>& entries) {
  const auto is_zero = [](const SourceEntry& entry) {
    return entry.name == kUniversal && entry.kind == EntryKind::kDirectory;
  };
  return std::ranges::any_of(entries, is_zero) &&
         std::ranges::any_of(entries, IsModel, &SourceEntry::name);
}

std::vector<Parameter> ParametersOf(const PickledPairs& shapes) {
  std::vector<Parameter> parameters;
  for (const auto& [name, sizes] : shapes) {
    Parameter parameter{.name = NameOf(*name), .shape = SizesOf(*sizes)};
    const Result<std::uint64_t> count = ElementCount(parameter.shape);
    if (!count.ok()) InvalidValue("a shape has more than 2^64 elements");
    parameter.count = *count;
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

// Entries of a file of the model that are no state, or are read elsewhere.
bool IsOfFormat(std::string_view key) {
  constexpr std::string_view kKeys =
      " module buffer_names optimizer param_shapes frozen_param_shapes frozen_param_fragments "
      "shared_params sparse_tensor_module_names skipped_steps global_steps global_samples "
      "dp_world_size mp_world_size ds_config ds_version checkpoint_parallel_dimensions "
      "universal_checkpoint_info ";
  return kKeys.find(StrCat(" ", key, " ")) != kKeys.npos;
}

class DeepSpeedFolder {
 public:
  DeepSpeedFolder(const std::string& path, SourceFiles& files)
      : files_(files), optimizer_(files, state_) {
    state_.format = "deepspeed";
    state_.path = path;
    state_.digest = "CRC-32 of the zips";
  }

  ForeignCheckpoint Read() {
    FindFiles();
    for (const std::string& name : partition_names_) {
      const std::string path = JoinPath(state_.path, name);
      Checked(path, [&] { ReadPartitions(*OpenTorchShard(path, files_)); });
    }
    for (const std::string& name : model_names_) {
      const std::string path = JoinPath(state_.path, name);
      Checked(path, [&] { ReadModel(*OpenTorchShard(path, files_)); });
    }
    Checked(state_.path, [&] {
      const auto add = [&](const Parameter& parameter, ForeignTensor tensor) {
        Add(parameter, std::move(tensor));
      };
      if (is_universal_) {
        ReadUniversal(state_.path, parameters_, files_, optimizer_, add);
      } else {
        Join(flats_, add);
      }
      for (const auto& [parameter, flat] : frozen_) {
        Add(parameter, TensorOf(parameter, flat, 0, files_, state_.path));
      }
      AddShared();
      AddOptimizer();
    });
    state_.tree = MappingNode(std::move(leaves_));
    const std::set<std::string> partitions(partition_names_.begin(), partition_names_.end());
    std::set<std::string> names(model_names_.begin(), model_names_.end());
    DescribeFiles(files_, state_, [&](const std::string& name) {
      if (names.contains(name)) return "file of torch.save: names, shapes and buffers";
      if (is_universal_ && name == kUniversal)
        return "weights and optimizer: a directory of each parameter";
      return partitions.contains(name) ? "file of torch.save: weights and optimizer of one rank"
                                       : nullptr;
    });
    names.insert(partitions.begin(), partitions.end());
    if (is_universal_) names.emplace(kUniversal);
    ReadBeside({.may_link = true, .format_names = std::move(names)}, files_, state_);
    return std::move(state_);
  }

 private:
  // The files of each rank, by name. Tensor-parallel ranks, pipeline stages and experts have other
  // names.
  void FindFiles() {
    const std::vector<SourceEntry> entries = files_.List(state_.path);
    is_universal_ = std::ranges::none_of(entries, IsPartition);
    std::set<std::string> names;
    std::size_t ranks = 0;
    std::string_view prefix;
    for (const SourceEntry& entry : entries) {
      const std::string& name = *names.insert(entry.name).first;
      const bool is_state = name.ends_with(kPartitionEnd) || IsModel(name);
      const bool is_of_part = name.find(kOfFirstModelRank) == name.npos ||
                              name.starts_with("layer_") || name.starts_with("exp");
      if (is_state && is_of_part) RefuseParts(JoinPath(state_.path, name));
      if (is_universal_ ? IsModel(name) : IsPartition(entry)) ++ranks;
      if (name.starts_with(kBf16)) prefix = kBf16;
    }
    const std::string model_of_all = StrCat(kOfFirstModelRank, kModelEnd);
    const bool has_model_of_all = names.contains(model_of_all);
    if (has_model_of_all) model_names_.push_back(model_of_all);
    is_stage_3_ = !has_model_of_all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::string of_rank = StrCat(kOfRank, rank, "_", kOfFirstModelRank);
      if (!is_universal_) partition_names_.push_back(StrCat(prefix, of_rank, kPartitionEnd));
      if (!has_model_of_all) model_names_.push_back(StrCat(of_rank, kModelEnd));
    }
    for (const auto* const expected : {&partition_names_, &model_names_}) {
      for (const std::string& name : *expected) {
        if (names.contains(name)) continue;
        Fail(Code::kIncomplete, state_.path, name, " is missing, of the files of ", ranks,
             " ranks");
      }
    }
  }

  [[noreturn]] static void RefuseParts(const std::string& path) {
    Fail(Code::kUnsupported, path,
         "the ranks have different parts of the model (tensor or pipeline parallelism, experts), "
         "expected ZeRO alone; ",
         kFromDeepSpeed);
  }

  void ReadPartitions(const TorchArchive& archive) {
    const Pickled& optimizer = Get(archive.root(), "optimizer_state_dict");
    if (Find(optimizer, "ds_zero_partition_groups") != nullptr) RefuseParts(archive.path());
    const bool is_first = flats_.empty();
    CheckRanks(archive, Get(optimizer, "partition_count"));
    const PickledItems& groups = SequenceOf(
        Get(optimizer, is_stage_3_ ? "fp32_flat_groups" : "single_partition_of_fp32_groups"));
    if (is_stage_3_) {
      flats_.emplace_back();
    } else if (is_first) {
      flats_.resize(groups.size());
    } else if (groups.size() != flats_.size()) {
      InvalidValue(StrCat(groups.size(), " parameter groups, expected ", flats_.size(),
                          ", as in the file of rank 0"));
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      AppendTo(is_stage_3_ ? flats_.back() : flats_[i], archive, *groups[i]);
    }
    optimizer_.AddRank(
        archive, Get(optimizer, is_stage_3_ ? "optimizer_state_dict" : "base_optimizer_state"),
        groups.size(), is_stage_3_);
    if (is_first) optimizer_.NoteScaler(optimizer);
    const Pickled* const paddings = Find(optimizer, "param_alignment_paddings");
    if (!is_first || paddings == nullptr) return;
    for (const Pickled* const group : SequenceOf(*paddings)) {
      paddings_.emplace_back();
      for (const Pickled* const one : SequenceOf(*group)) {
        paddings_.back().push_back(NaturalOf(*one));
      }
    }
  }

  // All ranks divide each group: one number, or one for each group.
  void CheckRanks(const TorchArchive& archive, const Pickled& counts) const {
    const auto check = [&](const Pickled& count) {
      if (NaturalOf(count) == partition_names_.size()) return;
      Fail(Code::kIncomplete, archive.path(), "has weights of one of ", NaturalOf(count),
           " ranks, and the directory files of ", partition_names_.size());
    };
    if (!counts.is_sequence()) return check(counts);
    for (const Pickled* const count : SequenceOf(counts)) check(*count);
  }

  void LeaveOut(const std::string& name, const std::string& reason) {
    state_.left_out.push_back({name, 0, reason, true});
  }

  void ReadModel(const TorchArchive& archive) {
    const Pickled& root = archive.root();
    if (Find(root, "ds_autoep_layers") != nullptr || Find(root, "autoep_layers") != nullptr) {
      RefuseParts(archive.path());
    }
    const std::uint64_t step = NaturalOf(Get(root, "global_steps"));
    const bool is_first = !state_.step;
    if (is_first) state_.step = step;
    if (step != *state_.step) {
      Fail(Code::kCorrupt, archive.path(), "step ", step, ", expected ", *state_.step, ", as in ",
           model_names_.front(), ": the files are of different saves");
    }
    if (is_first) ReadFirstModel(archive);
    if (frozen_.empty()) return;
    std::map<std::string_view, const Pickled*> fragments;
    for (const auto& [name, value] : PairsOf(Get(root, "frozen_param_fragments"))) {
      fragments.emplace(name->text, value);
    }
    for (auto& [parameter, flat] : frozen_) {
      const auto found = fragments.find(parameter.name);
      if (found == fragments.end()) InvalidValue("a frozen parameter is not stored");
      AppendTo(flat, archive, *found->second);
    }
  }

  void ReadFirstModel(const TorchArchive& archive) {
    const Pickled& root = archive.root();
    std::set<std::string> elsewhere;
    for (const Pickled* const group : SequenceOf(Get(root, "param_shapes"))) {
      parameters_.push_back(ParametersOf(PairsOf(*group)));
      for (const Parameter& parameter : parameters_.back()) elsewhere.insert(parameter.name);
    }
    // Stages 1 and 2 store frozen parameters whole, in the module.
    if (is_stage_3_) {
      for (Parameter& parameter : ParametersOf(EntriesOf(root, "frozen_param_shapes"))) {
        elsewhere.insert(parameter.name);
        frozen_.emplace_back(std::move(parameter), Flat());
      }
    }
    for (const auto& [name, stored] : EntriesOf(root, "shared_params")) {
      shared_.emplace_back(NameOf(*name), NameOf(*stored));
      elsewhere.insert(shared_.back().first);
    }
    // The module has a placeholder or a copy of each parameter that is stored elsewhere.
    TorchValues values(archive, files_.options(), state_);
    for (const auto& [key, value] : PairsOf(Get(root, "module"))) {
      const std::string name = NameOf(*key);
      if (elsewhere.contains(name)) continue;
      AddLeaf(name, values.Node(*value, {name}));
    }
    for (const auto& [key, value] : PairsOf(root)) {
      const bool is_state =
          key->is(Kind::kText) && !IsOfFormat(key->text) && !value->is(Kind::kNone);
      if (is_state) LeaveOut(NameOf(*key), "state of schedule or trainer, in a file of the model");
    }
  }

  void AddOptimizer() {
    if (!is_universal_) {
      for (const auto& [kind, flats] : optimizer_.moments()) {
        Join(flats, [&, &name = kind](const Parameter& parameter, ForeignTensor tensor) {
          optimizer_.Add(parameter.name, name, std::move(tensor));
        });
      }
    }
    FlatOptimizer::Names names;
    for (const std::vector<Parameter>& group : parameters_) {
      names.emplace_back();
      for (const Parameter& parameter : group) names.back().push_back(parameter.name);
    }
    if (!is_universal_) optimizer_.AddSteps(names);
    ForeignNode node = optimizer_.TakeNode(names);
    if (!node.is_null()) return AddLeaf("optimizer", std::move(node));
    LeaveOut("optimizer", "no state of the optimizer is stored in a known form");
  }

  template <typename Use>
  void Join(const std::vector<Flat>& flats, const Use& use) {
    is_stage_3_ ? JoinParameters(flats, use) : JoinGroups(flats, use);
  }

  // Stages 1 and 2: the parameters of a group, one after the other, are divided among the ranks.
  template <typename Use>
  void JoinGroups(const std::vector<Flat>& flats, const Use& use) {
    if (parameters_.size() != flats.size()) {
      InvalidValue(
          StrCat(flats.size(), " parameter groups, and the shapes of ", parameters_.size()));
    }
    for (std::size_t i = 0; i < flats.size(); ++i) {
      std::uint64_t at = 0;
      for (std::size_t j = 0; j < parameters_[i].size(); ++j) {
        use(parameters_[i][j], TensorOf(parameters_[i][j], flats[i], at, files_, state_.path));
        at += parameters_[i][j].count;
        if (i < paddings_.size() && j < paddings_[i].size()) at = CappedAdd(at, paddings_[i][j]);
      }
      CheckEnd(at, flats[i], flats_[i], 2 * partition_names_.size());
    }
  }

  // Stage 3: each parameter is divided among the ranks, and padded to equal parts. A rank may have
  // one part in two of its flat tensors.
  template <typename Use>
  void JoinParameters(const std::vector<Flat>& flats, const Use& use) {
    const std::size_t ranks = flats.size();
    std::uint64_t at = 0;
    for (const std::vector<Parameter>& group : parameters_) {
      for (const Parameter& parameter : group) {
        const std::uint64_t part = AlignUp(parameter.count, ranks) / ranks;
        ForeignTensor tensor{.shape = parameter.shape};
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          const std::uint64_t first = std::min(rank * part, parameter.count);
          flats[rank].AddTo(tensor, at, std::min(part, parameter.count - first), first,
                            files_.budget(), state_.path);
        }
        use(parameter, std::move(tensor));
        at += part;
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) CheckEnd(at, flats[rank], flats_[rank], 1);
  }

  void Add(const Parameter& parameter, ForeignTensor tensor) {
    if (tensor.dtype == DType::kNone) tensor.dtype = DType::kF32;  // no elements
    if (!state_.tensors.emplace(parameter.name, std::move(tensor)).second) {
      InvalidValue(StrCat(Printable(parameter.name), " is stored twice"));
    }
    AddLeaf(parameter.name, TensorNode(parameter.name));
  }

  void AddLeaf(const std::string& name, ForeignNode node) {
    if (!keys_.insert(name).second) InvalidValue(StrCat(Printable(name), " is stored twice"));
    leaves_.push_back({name, std::move(node)});
  }

  // Tied weights are stored under one of their names. DeepSpeed can omit frozen ones.
  void AddShared() {
    for (const auto& [name, stored] : shared_) {
      if (state_.tensors.contains(stored)) {
        AddLeaf(name, TensorNode(stored));
      } else {
        state_.notes.push_back(StrCat(Printable(name), " is left out: ", Printable(stored),
                                      ", with which it shares memory, is not stored"));
      }
    }
  }

  SourceFiles& files_;
  ForeignCheckpoint state_;
  FlatOptimizer optimizer_;
  std::vector<std::string> partition_names_;  // by rank
  std::vector<std::string> model_names_;      // in stage 3 by rank
  bool is_universal_ = false;
  bool is_stage_3_ = false;
  std::vector<Flat> flats_;                           // of each group; in stage 3 of each rank
  std::vector<std::vector<std::uint64_t>> paddings_;  // elements behind each parameter, by group
  Parameters parameters_;
  std::vector<std::pair<Parameter, Flat>> frozen_;
  std::vector<std::pair<std::string, std::string>> shared_;  // a name, and the stored name
  ForeignNode::Members leaves_;
  std::set<std::string> keys_;  // of the leaves
};

}  // namespace

bool IsDeepSpeed(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, IsPartition) || IsUniversal(entries);
}

ForeignCheckpoint ReadDeepSpeed(const std::string& path, SourceFiles& files) {
  return DeepSpeedFolder(path, files).Read();
}

std::optional<std::string> NewestTag(const std::string& path, SourceFiles& files) {
  const std::vector<SourceEntry> entries = files.List(path);
  for (const char* const tracker : {"latest", "latest_universal"}) {
    const auto entry = std::ranges::find(entries, tracker, &SourceEntry::name);
    if (entry == entries.end() || !entry->is_file || entry->size > kTagBytesMax) continue;
    std::string tag = files.Open(JoinPath(path, tracker))->Read(0, entry->size);
    while (tag.ends_with('\n')) tag.pop_back();
    for (const SourceEntry& other : entries) {
      if (other.name != tag || other.kind != EntryKind::kDirectory) continue;
      std::string directory = JoinPath(path, tag);
      if (IsDeepSpeed(files.List(directory))) return directory;
    }
  }
  return std::nullopt;
}

}  // namespace sealpoint::internal::foreign
