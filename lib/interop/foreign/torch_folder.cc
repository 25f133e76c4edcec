// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/others.h"
#include "lib/interop/foreign/parts.h"
#include "lib/interop/foreign/torch_legacy.h"
#include "lib/interop/foreign/torch_values.h"
#include "lib/safetensors/index_file.h"
#include "lib/storage/path.h"

// Directories of a model in files of torch.save, as transformers stored them before safetensors:
// pytorch_model.bin, or numbered files, with an index or without.

namespace sealpoint::internal::foreign {
namespace {

// Names in transformers, in PEFT, and in accelerate for the whole state of FSDP.
constexpr std::array<std::string_view, 3> kOneFile = {"pytorch_model.bin", "adapter_model.bin",
                                                      "pytorch_model_fsdp.bin"};
constexpr std::string_view kNumbered = "pytorch_model-#-of-";
constexpr std::string_view kIndexSuffix = ".bin.index.json";
constexpr std::uint64_t kIndexBytesMax = 100'000'000;

bool IsIndex(const SourceEntry& entry) {
  return entry.is_file && !entry.name.starts_with('.') && entry.name.ends_with(kIndexSuffix);
}

bool IsOneFile(const SourceEntry& entry) {
  return entry.is_file && std::ranges::find(kOneFile, entry.name) != kOneFile.end();
}

bool IsNumbered(const SourceEntry& entry) { return FamilyOf(entry.name).starts_with(kNumbered); }

class TorchFolder {
 public:
  TorchFolder(const std::string& path, SourceFiles& files) : files_(files) {
    state_.format = "hf_torch";
    state_.path = path;
    state_.digest = "CRC-32 of the zips";
  }

  ForeignCheckpoint Read() {
    std::set<std::string> names = Names();
    std::vector<std::pair<std::string, ForeignCheckpoint>> shards;
    for (const std::string& name : names) {
      if (Has(name)) shards.emplace_back(name, ReadTorchShard(JoinPath(state_.path, name), files_));
    }
    std::set<std::pair<std::string_view, std::string_view>> found;
    for (const auto& [name, shard] : shards) {
      for (const auto& member : *shard.tree.if_object()) found.emplace(member.key, name);
    }
    if (index_) {
      Result<std::vector<std::string>> missing = index_->Missing(found);
      if (!missing.ok()) {
        throw Failure{std::move(missing).error().AtPath(JoinPath(state_.path, index_name_))};
      }
      state_.missing = *std::move(missing);
    }
    for (auto& [name, shard] : shards) TakeShard(name, std::move(shard));
    state_.tree = MappingNode(std::move(leaves_));
    DescribeFiles(files_, state_, [&](const std::string& name) {
      if (name == index_name_) return "index: the file of each tensor";
      return names.contains(name) ? "file of torch.save: tensors" : nullptr;
    });
    names.insert(index_name_);
    ReadBeside({.may_link = true, .index = index_name_, .format_names = std::move(names)}, files_,
               state_);
    return std::move(state_);
  }

 private:
  // The files of the model.
  std::set<std::string> Names() {
    std::vector<std::string> indices;
    std::vector<std::string> numbered;
    std::vector<std::string> ones;
    for (const SourceEntry& entry : files_.List(state_.path)) {
      if (IsIndex(entry)) indices.push_back(entry.name);
      if (IsNumbered(entry)) numbered.push_back(entry.name);
      if (IsOneFile(entry)) ones.push_back(entry.name);
    }
    if (indices.size() > 1) {
      Fail(Code::kUnsupported, state_.path, "several indices: ", indices[0], " and ", indices[1],
           "; expected one");
    }
    if (indices.size() == 1) return NamesOf(indices.front());
    if (ones.size() > 1 && numbered.empty()) {
      Fail(Code::kUnsupported, state_.path, "several models: ", ones[0], " and ", ones[1],
           "; expected one");
    }
    if (numbered.empty()) return {ones.begin(), ones.end()};
    const std::string& first = numbered.front();
    const std::size_t at = first.rfind("-of-") + 4;
    std::size_t count = ~std::size_t{0};  // stays if the number is larger
    std::from_chars(first.data() + at, first.data() + first.size(), count);
    const std::string family = FamilyOf(first);
    const bool are_all =
        numbered.size() == count && std::ranges::all_of(numbered, [&](const std::string& name) {
          return FamilyOf(name) == family;
        });
    if (!are_all) {
      Fail(Code::kIncomplete, state_.path, "there are ", numbered.size(), " files as ", first,
           ", expected ", count, ", or an index that names them");
    }
    return {numbered.begin(), numbered.end()};
  }

  std::set<std::string> NamesOf(const std::string& index) {
    index_name_ = index;
    const auto file = files_.Open(JoinPath(state_.path, index));
    if (file->size() > kIndexBytesMax) {
      Fail(Code::kLimitExceeded, file->path(), "index has ", file->size(), " bytes, expected ",
           kIndexBytesMax, " at most");
    }
    const std::string text = file->Read(0, file->size());
    Result<safetensors::ShardIndex> decoded =
        safetensors::ShardIndex::Decode(text, files_.options().allow_missing);
    if (!decoded.ok()) throw Failure{std::move(decoded).error().AtPath(file->path())};
    index_ = *std::move(decoded);
    const std::vector<std::string> names = index_->files();
    return {names.begin(), names.end()};
  }

  // False if the file may be missing and is. An index may name files in subdirectories.
  bool Has(const std::string& name) {
    const std::string path = JoinPath(state_.path, name);
    const Result<PathKind> kind = KindAt(path, *files_.storage());
    if (!kind.ok() || *kind != PathKind::kNothing) return true;  // opening it says what it is
    if (index_ && index_->MayMiss(name)) return false;
    throw Failure{safetensors::ShardIndex::NoFile().AtPath(path)};
  }

  void TakeShard(const std::string& name, ForeignCheckpoint shard) {
    for (ForeignNode::Member& member : *shard.tree.if_object()) {
      if (index_ && !index_->MayHold(member.key, name)) {
        state_.left_out.push_back(
            {JoinPath(name, member.key), 0, "the index names another file for the tensor", false});
        shard.tensors.erase(member.key);
        continue;
      }
      if (!keys_.insert(member.key).second) {
        throw Failure{
            Status(Code::kCorrupt, "stored in two files").AtPath(shard.path).AtTensor(member.key)};
      }
      leaves_.push_back(std::move(member));
    }
    for (auto& [tensor, described] : shard.tensors) {
      state_.tensors.try_emplace(tensor, std::move(described));
    }
    std::ranges::move(shard.notes, std::back_inserter(state_.notes));
  }

  SourceFiles& files_;
  ForeignCheckpoint state_;
  std::string index_name_;
  std::optional<safetensors::ShardIndex> index_;
  ForeignNode::Members leaves_;
  std::set<std::string> keys_;
};

}  // namespace

bool IsTorchFolder(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, [](const SourceEntry& entry) {
    return IsIndex(entry) || IsOneFile(entry) || (entry.is_file && IsNumbered(entry));
  });
}

std::unique_ptr<TorchArchive> OpenTorchShard(const std::string& path, SourceFiles& files) {
  const auto file = files.Open(path);
  std::unique_ptr<TorchArchive> archive = OpenTorchArchive(file);
  if (archive != nullptr) return archive;
  if (const auto other = OtherFile(*file)) Fail(*other, path);
  Fail(Code::kUnsupported, path, "not a file of torch.save, unlike the model's other files");
}

ForeignCheckpoint ReadTorchShard(const std::string& path, SourceFiles& files) {
  const std::unique_ptr<TorchArchive> archive = OpenTorchShard(path, files);
  ForeignCheckpoint shard{.path = path};
  shard.tree = TorchValues(*archive, files.options(), shard).Node(archive->root(), {});
  if (!shard.unread.empty()) throw Failure{std::move(shard.unread.front().error)};
  if (shard.tree.if_object() == nullptr || !KindOf(shard.tree).empty()) {
    Fail(Code::kUnsupported, path, "the content of the file is not a mapping of names");
  }
  return shard;
}

ForeignCheckpoint ReadTorchFolder(const std::string& path, SourceFiles& files) {
  return TorchFolder(path, files).Read();
}

}  // namespace sealpoint::internal::foreign
