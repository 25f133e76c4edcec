// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/join.h"
#include "lib/interop/foreign/megatron_optimizer.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/others.h"
#include "lib/interop/foreign/torch_values.h"
#include "sealpoint/bytes.h"

// Directories of Megatron in its format before torch_dist (--ckpt-format torch): a file for each
// tensor-parallel rank of each pipeline stage. The names of a GPT model of Megatron-core say how a
// tensor is divided; the arguments of the training, which each file has, say its whole size.

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::string_view kRankFolder = "mp_rank_";
constexpr const char* kRankFile = "model_optim_rng.pt";
constexpr std::string_view kLayers = "layers.";
constexpr std::string_view kWordEmbeddings = "embedding.word_embeddings.weight";
constexpr std::string_view kOutputLayer = "output_layer.weight";

// Arguments of the training.
class Arguments {
 public:
  explicit Arguments(const Pickled& root) {
    const Pickled& args = Get(root, "args");
    if (!args.is(Kind::kObject) || args.parts()->state == nullptr) {
      InvalidValue("the arguments of the training are missing");
    }
    for (const auto& [name, value] : PairsOf(*args.parts()->state)) {
      if (!name->is(Kind::kText)) continue;
      if (value->is(Kind::kInt) || value->is(Kind::kBool)) values_[NameOf(*name)] = value->number;
    }
  }

  // 0 if it is missing, None or False.
  std::uint64_t operator[](const char* name) const {
    const auto found = values_.find(name);
    return found == values_.end() || found->second < 0 ? 0
                                                       : static_cast<std::uint64_t>(found->second);
  }
  std::uint64_t ranks() const {
    return std::max<std::uint64_t>(1, (*this)["tensor_model_parallel_size"]);
  }
  std::uint64_t stages() const {
    return std::max<std::uint64_t>(1, (*this)["pipeline_model_parallel_size"]);
  }

 private:
  std::map<std::string, std::int64_t> values_;
};

Division DivisionOf(std::string_view name, const Arguments& args) {
  const auto ends = [name](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings,
                               [name](std::string_view end) { return name.ends_with(end); });
  };
  const std::uint64_t heads = args["num_attention_heads"];
  const std::uint64_t groups =
      args["group_query_attention"] != 0 ? args["num_query_groups"] : heads;
  const std::uint64_t width = CappedMul(heads, args["kv_channels"]);
  if (name.find("experts") != name.npos) return {};
  if (ends({"word_embeddings.weight", "output_layer.weight"})) {
    return {Cut::kRows, args["padded_vocab_size"]};
  }
  if (ends({"linear_qkv.weight", "linear_qkv.bias"})) {
    return {Cut::kRows, CappedAdd(width, CappedMul(2 * groups, args["kv_channels"]))};
  }
  if (ends({"linear_fc1.weight", "linear_fc1.bias"})) {
    const bool is_gated = args["swiglu"] != 0;
    return {Cut::kRows, CappedMul(args["ffn_hidden_size"], is_gated ? 2 : 1), is_gated};
  }
  if (ends({"linear_proj.weight"})) return {Cut::kColumns, width};
  if (ends({"linear_fc2.weight"})) return {Cut::kColumns, args["ffn_hidden_size"]};
  const bool is_whole =
      ends({"norm.weight", "norm.bias", "layer_norm_weight", "layer_norm_bias", "linear_proj.bias",
            "linear_fc2.bias", "position_embeddings.weight", "inv_freq"});
  return {is_whole ? Cut::kNone : Cut::kUnknown};
}

class MegatronTorch {
 public:
  MegatronTorch(const std::string& path, SourceFiles& files)
      : files_(files), optimizer_(files, state_) {
    state_.format = "megatron_torch";
    state_.path = path;
    state_.digest = "CRC-32 of the zips";
  }

  ForeignCheckpoint Read() {
    for (SourceEntry& entry : files_.List(state_.path)) {
      if (entry.name.starts_with(kRankFolder)) found_.insert(std::move(entry.name));
    }
    std::uint64_t stages = 1;
    for (std::uint64_t stage = 0; stage < stages; ++stage) {
      std::vector<Shard> shards;
      std::uint64_t ranks = 1;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        shards.push_back(ReadShard(rank, stage));
        stages = shards.front().args.stages();
        ranks = shards.front().args.ranks();
      }
      JoinStage(shards);
    }
    CheckFolders();
    AddOptimizer();
    state_.tree = MappingNode(std::move(leaves_));
    if (has_extra_state_) {
      state_.left_out.push_back(
          {"_extra_state", 0, "values of Transformer Engine's modules", true});
    }
    DescribeFiles(files_, state_, [&](const std::string& name) {
      return folders_.contains(name) ? "directory of a rank" : nullptr;
    });
    ReadBeside({.may_link = true, .format_names = folders_}, files_, state_);
    return std::move(state_);
  }

 private:
  void AddOptimizer() {
    ForeignNode node = optimizer_.TakeNode();
    if (node.is_null()) {
      constexpr const char* kWhy =
          "optimizer, schedule and random states in the files of the ranks: only the weights are "
          "read, because which state belongs to which parameter cannot be confirmed: ";
      state_.left_out.push_back({"optimizer", 0, StrCat(kWhy, optimizer_.reason()), true});
      return;
    }
    leaves_.push_back({"optimizer", std::move(node)});
    for (const std::string& key : other_state_) {
      state_.left_out.push_back(
          {key, 0, "state of schedule or trainer, in the files of the ranks", true});
    }
  }

  struct Shard {
    std::string path;
    Arguments args;
    std::vector<std::string> names{};  // in stored order
    std::map<std::string, ForeignTensor> tensors{};
  };

  // Megatron names the stage only if there are several.
  Shard ReadShard(std::uint64_t rank, std::uint64_t stage) {
    const std::string folder = StrCat(kRankFolder, Padded(rank, 2));
    const std::string of_stage = StrCat(folder, "_", Padded(stage, 3));
    const std::string& name = stage > 0 || found_.contains(of_stage) ? of_stage : folder;
    const std::string path = JoinPath(JoinPath(state_.path, name), kRankFile);
    if (!found_.contains(name)) {
      Fail(Code::kIncomplete, path, "the file of tensor-parallel rank ", rank,
           " of pipeline stage ", stage, " is missing");
    }
    folders_.insert(name);
    const std::unique_ptr<TorchArchive> archive = OpenTorchShard(path, files_);
    try {
      return ShardOf(*archive, path);
    } catch (const std::invalid_argument& error) {
      Fail(Code::kCorrupt, path, "not as Megatron writes it: ", error.what());
    }
  }

  Shard ShardOf(const TorchArchive& archive, const std::string& path) {
    const Pickled& root = archive.root();
    Shard shard{.path = path, .args = Arguments(root)};
    CheckArguments(shard, NaturalOf(Get(root, "iteration")));
    const Pickled* const model = Find(root, "model");
    if (model == nullptr) {
      Fail(Code::kUnsupported, path,
           "the rank has several pieces of the model (virtual pipeline "
           "stages), expected one; ",
           kFromMegatron);
    }
    ForeignCheckpoint found;
    TorchValues values(archive, files_.options(), found);
    for (const auto& [key, value] : PairsOf(*model)) {
      const std::string name = NameOf(*key);
      if (name.ends_with("_extra_state")) {
        has_extra_state_ |= !value->is(Kind::kNone);
        continue;
      }
      const ForeignNode node = values.Node(*value, {name});
      if (KindOf(node) != "tensor") {
        FailAt(
            Code::kUnsupported, path, name,
            StrCat("an entry of the model is a ", node.if_object() != nullptr ? "mapping" : "value",
                   ", expected a tensor; ", kFromMegatron));
      }
      // Tied tensors of one file have one description.
      const std::string& stored = *node.Find("name")->if_text();
      shard.names.push_back(name);
      shard.tensors[name] = found.tensors.at(stored);
    }
    optimizer_.AddRank({archive, shard.names, shard.tensors});
    NoteOtherState(root);
    return shard;
  }

  void NoteOtherState(const Pickled& root) {
    constexpr std::string_view kRead =
        " args checkpoint_version content_metadata iteration model optimizer ";
    for (const auto& [key, value] : PairsOf(root)) {
      const std::string name = NameOf(*key);
      const bool is_read = kRead.find(StrCat(" ", name, " ")) != kRead.npos;
      if (!is_read && !value->is(Kind::kNone)) other_state_.insert(name);
    }
    const Pickled* const optimizer = Find(root, "optimizer");
    const bool has_scaler = optimizer != nullptr && optimizer->is(Kind::kMapping) &&
                            Find(*optimizer, "grad_scaler") != nullptr;
    if (has_scaler) other_state_.insert("grad_scaler");
  }

  // All ranks are of one training and of one save.
  void CheckArguments(const Shard& shard, std::uint64_t iteration) {
    const bool is_first = !state_.step;
    if (is_first) {
      state_.step = iteration;
      ranks_ = shard.args.ranks();
      stages_ = shard.args.stages();
    }
    const bool has_experts =
        shard.args["expert_model_parallel_size"] > 1 || shard.args["num_experts"] > 1;
    if (has_experts) {
      Fail(Code::kUnsupported, shard.path, "a model with experts, expected none; ", kFromMegatron);
    }
    if (iteration == *state_.step && shard.args.ranks() == ranks_ &&
        shard.args.stages() == stages_) {
      return;
    }
    Fail(Code::kCorrupt, shard.path, "iteration ", iteration, " on ", shard.args.ranks(), " x ",
         shard.args.stages(), " ranks, expected ", *state_.step, " on ", ranks_, " x ", stages_,
         ", as in the first file");
  }

  // Directories of more ranks are left from another save, or of a model with experts.
  void CheckFolders() const {
    for (const std::string& name : found_) {
      if (folders_.contains(name)) continue;
      Fail(Code::kUnsupported, JoinPath(state_.path, name), "the directory of a rank beyond ",
           ranks_, " x ", stages_, ", which the arguments of the training name; ", kFromMegatron);
    }
  }

  void JoinStage(std::vector<Shard>& shards) {
    for (const Shard& shard : shards) {
      if (shard.names.size() == shards.front().names.size()) continue;
      Fail(Code::kCorrupt, shard.path, "the rank has ", shard.names.size(), " tensors, expected ",
           shards.front().names.size(), ", as in rank 0");
    }
    std::uint64_t layers = 0;
    for (const std::string& name : shards.front().names) {
      const Shard& first = shards.front();
      const Division division = DivisionOf(name, first.args);
      CheckDivision(name, first.tensors.at(name), division, first.path);
      ForeignTensor joined = Joined(name, shards, division, files_);
      const std::string global = GlobalName(name, layers);
      if (IsCopyOfEmbeddings(global, joined, shards.front())) continue;
      if (!state_.tensors.emplace(global, std::move(joined)).second) {
        FailAt(Code::kCorrupt, shards.front().path, global, "stored in two pipeline stages");
      }
      leaves_.push_back({global, TensorNode(global)});
      optimizer_.Join(name, global, division);
    }
    optimizer_.EndStage();
    layers_ += layers;
  }

  // Where embeddings and output layer are tied, the last of several stages has a copy of them.
  bool IsCopyOfEmbeddings(const std::string& name, const ForeignTensor& joined,
                          const Shard& shard) const {
    const auto found = state_.tensors.find(std::string(kWordEmbeddings));
    const bool is_copy = name == kOutputLayer && stages_ > 1 &&
                         shard.args["untie_embeddings_and_output_weights"] == 0;
    if (!is_copy) return false;
    if (found != state_.tensors.end() && AreSame(found->second, joined, files_)) return true;
    FailAt(Code::kCorrupt, shard.path, name, "differs from the embeddings, with which it is tied");
  }

  // Stages count their layers from 0. Notes how many there are.
  std::string GlobalName(const std::string& name, std::uint64_t& layers) const {
    const std::size_t at = name.find(kLayers);
    if (at == name.npos) return name;
    const std::size_t begin = at + kLayers.size();
    const std::size_t end = name.find('.', begin);
    const std::string number = name.substr(begin, end == name.npos ? end : end - begin);
    const bool is_number = !number.empty() && number.size() < 9 &&
                           number.find_first_not_of("0123456789") == number.npos;
    if (!is_number || end == name.npos) return name;
    const std::uint64_t layer = std::stoul(number);
    layers = std::max(layers, layer + 1);
    return StrCat(name.substr(0, begin), layers_ + layer, name.substr(end));
  }

  // A tensor that is divided in another way than its name says would be joined wrong in silence.
  void CheckDivision(const std::string& name, const ForeignTensor& part, const Division& division,
                     const std::string& path) const {
    if (division.cut == Cut::kNone) return;
    const auto dim = static_cast<std::size_t>(division.cut);
    const bool fits = division.cut != Cut::kUnknown && part.shape.size() > dim &&
                      part.shape.size() <= 2 && division.size > 0 &&
                      CappedMul(part.shape[dim], ranks_) == division.size &&
                      (!division.is_gated || part.shape[dim] % 2 == 0);
    if (fits) return;
    FailAt(Code::kUnsupported, path, name,
           StrCat("how ", ranks_, " ranks divide a tensor of this name and shape ",
                  ShapeToString(part.shape), " is not known; ", kFromMegatron));
  }

  SourceFiles& files_;
  ForeignCheckpoint state_;
  MegatronOptimizer optimizer_;
  std::set<std::string> other_state_;  // that is not read
  std::uint64_t ranks_ = 0;
  std::uint64_t stages_ = 0;
  std::uint64_t layers_ = 0;  // of the stages before
  bool has_extra_state_ = false;
  std::set<std::string> found_;    // directories of ranks
  std::set<std::string> folders_;  // those that were read
  ForeignNode::Members leaves_;
};

}  // namespace

bool IsMegatronTorch(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, [](const SourceEntry& entry) {
    return entry.kind == EntryKind::kDirectory && entry.name.starts_with(kRankFolder);
  });
}

ForeignCheckpoint ReadMegatronTorch(const std::string& path, SourceFiles& files) {
  return MegatronTorch(path, files).Read();
}

}  // namespace sealpoint::internal::foreign
