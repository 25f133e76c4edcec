// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/join.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/others.h"
#include "lib/interop/foreign/parts.h"
#include "lib/storage/path.h"

// Directories of Llama models as Meta publishes them: consolidated.00.pth and so on, one file for
// each rank of the model-parallel run. The layers of that run define how a tensor is divided
// (ColumnParallelLinear, RowParallelLinear and the embeddings of fairscale, in llama/model.py).

namespace sealpoint::internal::foreign {
namespace {

constexpr std::string_view kFamily = "consolidated.#.pth";
constexpr std::string_view kWidthIsThatOf = "norm.weight";
constexpr std::string_view kEmbeddings = "tok_embeddings.weight";

Cut CutOf(std::string_view name) {
  constexpr std::array<std::string_view, 6> kByRows = {".wq.weight", ".wk.weight", ".wv.weight",
                                                       ".w1.weight", ".w3.weight", "output.weight"};
  constexpr std::array<std::string_view, 2> kByColumns = {".wo.weight", ".w2.weight"};
  constexpr std::array<std::string_view, 2> kWhole = {"norm.weight", "rope.freqs"};
  const auto ends = [name](std::string_view end) { return name.ends_with(end); };
  if (std::ranges::any_of(kByRows, ends)) return Cut::kRows;
  if (std::ranges::any_of(kByColumns, ends)) return Cut::kColumns;
  return std::ranges::any_of(kWhole, ends) ? Cut::kNone : Cut::kUnknown;
}

bool IsPart(const SourceEntry& entry) { return entry.is_file && FamilyOf(entry.name) == kFamily; }

class LlamaFolder {
 public:
  LlamaFolder(const std::string& path, SourceFiles& files) : files_(files) {
    state_.format = "llama";
    state_.path = path;
    state_.digest = "CRC-32 of the zips";
  }

  ForeignCheckpoint Read() {
    const std::vector<std::string> names = Names();
    for (const std::string& name : names) {
      shards_.push_back(ReadTorchShard(JoinPath(state_.path, name), files_));
    }
    if (shards_.size() == 1) {
      state_.tree = std::move(shards_.front().tree);
      state_.tensors = std::move(shards_.front().tensors);
    } else {
      JoinAll();
    }
    for (ForeignCheckpoint& shard : shards_) {
      std::ranges::move(shard.notes, std::back_inserter(state_.notes));
    }
    std::set<std::string> parts(names.begin(), names.end());
    DescribeFiles(files_, state_, [&](const std::string& name) {
      return parts.contains(name) ? "file of torch.save: the tensors of one rank" : nullptr;
    });
    ReadBeside({.may_link = true, .format_names = std::move(parts)}, files_, state_);
    return std::move(state_);
  }

 private:
  void JoinAll() {
    ForeignNode::Members& members = *shards_.front().tree.if_object();
    for (const ForeignCheckpoint& shard : shards_) {
      if (shard.tensors.size() == members.size() &&
          shard.tree.if_object()->size() == members.size()) {
        continue;
      }
      Fail(Code::kUnsupported, shard.path, "the file has ", shard.tree.if_object()->size(),
           " entries and ", shard.tensors.size(), " tensors, expected ", members.size(),
           " tensors, as in the first file");
    }
    const auto norm = shards_.front().tensors.find(std::string(kWidthIsThatOf));
    if (norm != shards_.front().tensors.end() && norm->second.shape.size() == 1) {
      width_ = norm->second.shape.front();
    }
    for (const ForeignNode::Member& member : members) Join(member.key);
    state_.tree = MappingNode(std::move(members));
  }

  // All files, by rank.
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const SourceEntry& entry : files_.List(state_.path)) {
      if (IsPart(entry)) names.push_back(entry.name);
    }
    for (std::size_t rank = 0; rank < names.size(); ++rank) {
      const std::string number = std::to_string(rank);
      const std::string expected =
          "consolidated." + (number.size() < 2 ? "0" + number : number) + ".pth";
      if (names[rank] == expected) continue;
      Fail(Code::kIncomplete, state_.path, "of ", names.size(), " files of a model the one number ",
           rank, " is ", Printable(names[rank]), ", expected ", expected);
    }
    return names;
  }

  Cut CutHere(const std::string& name, const Shape& shape) const {
    // Embeddings are divided by columns until Llama 2, and by rows since Llama 3.
    const bool is_embedding = name == kEmbeddings && shape.size() == 2;
    if (is_embedding) return shape[1] == width_ ? Cut::kRows : Cut::kColumns;
    return CutOf(name);
  }

  void Join(const std::string& name) {
    const Shape& shape = shards_.front().tensors.at(name).shape;
    Division division{.cut = CutHere(name, shape)};
    CheckWidth(name, shape, division.cut);
    if (division.cut != Cut::kNone) {
      division.size = CappedMul(shape[static_cast<std::size_t>(division.cut)], shards_.size());
    }
    state_.tensors.emplace(name, Joined(name, shards_, division, files_));
  }

  // A tensor that is divided in another way than its name says would be joined wrong in silence.
  void CheckWidth(const std::string& name, const Shape& shape, Cut cut) const {
    if (cut == Cut::kNone) return;
    const bool is_matrix = cut != Cut::kUnknown && shape.size() == 2 && width_ > 0;
    const bool fits = is_matrix && (name == kEmbeddings && cut == Cut::kColumns
                                        ? shape[1] * shards_.size() == width_
                                        : shape[1 - static_cast<std::size_t>(cut)] == width_);
    if (fits) return;
    FailAt(Code::kUnsupported, state_.path, name,
           StrCat("how the ", shards_.size(), " files divide a tensor of this name and shape ",
                  ShapeToString(shape), " of a model of width ", width_, " is not known; ",
                  kFromLlama));
  }

  SourceFiles& files_;
  ForeignCheckpoint state_;
  std::vector<ForeignCheckpoint> shards_;  // by rank
  std::uint64_t width_ = 0;                // of the model: elements of a token; 0: not known
};

}  // namespace

bool IsLlama(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, IsPart);
}

ForeignCheckpoint ReadLlama(const std::string& path, SourceFiles& files) {
  return LlamaFolder(path, files).Read();
}

}  // namespace sealpoint::internal::foreign
