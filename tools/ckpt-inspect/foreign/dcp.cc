// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sealpoint/storage.h"
#include "sealpoint/text.h"
#include "tools/ckpt-inspect/foreign/beside.h"
#include "tools/ckpt-inspect/foreign/dcp_metadata.h"
#include "tools/ckpt-inspect/foreign/failure.h"
#include "tools/ckpt-inspect/foreign/formats.h"
#include "tools/ckpt-inspect/foreign/torch_values.h"
#include "tools/ckpt-inspect/foreign/torch_zip.h"

namespace sealpoint::tools {
namespace {

constexpr const char* kMetadata = ".metadata";
constexpr const char* kMarker = "metadata.json";
constexpr const char* kCommon = "common.pt";
constexpr const char* kLatest = "latest_checkpointed_iteration.txt";
// The item of the common state since 0.19.
constexpr const char* kCommonKey = "common_state/shard_0_1";
constexpr std::uint64_t kMarkerBytesMax = 1 << 20;
constexpr std::string_view kDigest =
    "CRC-32 of the zips, one per tensor and rank; none for .metadata";

// The number of "__7.metadata".
std::optional<int> RankOf(std::string_view name) {
  constexpr std::string_view kBegin = "__";
  if (!name.starts_with(kBegin) || !name.ends_with(kMetadata)) return std::nullopt;
  name =
      name.substr(kBegin.size(), name.size() - kBegin.size() - std::string_view(kMetadata).size());
  int rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && rank >= 0;
  return is_number ? std::optional(rank) : std::nullopt;
}

// Of mappings and lists while it is not known which they are.
class Branch {
 public:
  void Put(const ValuePath& path, Json node) {
    Branch* branch = this;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      Child& child = branch->ChildAt(path[i]);
      if (child.leaf) throw std::string("a value lies within another");
      if (child.branch == nullptr) child.branch = std::make_unique<Branch>();
      branch = child.branch.get();
    }
    Child& child = branch->ChildAt(path.back());
    if (child.leaf || child.branch != nullptr) {
      throw std::string("two places of the state have this path");
    }
    child.leaf = std::move(node);
  }

  Json Node(bool is_root) const {
    if (!is_root && IsList()) {
      Json list = Json::array();
      for (std::size_t i = 0; i < order_.size(); ++i) {
        list.push_back(children_.at(static_cast<std::int64_t>(i)).Node());
      }
      return list;
    }
    const bool is_plain = std::ranges::all_of(
        order_, [](const PathPart& part) { return std::holds_alternative<std::string>(part); });
    std::vector<std::pair<std::string, Json>> entries;
    Json items = Json::array();
    for (const PathPart& part : order_) {
      Json node = children_.at(part).Node();
      if (is_plain) {
        entries.emplace_back(std::get<std::string>(part), std::move(node));
      } else {
        Json key = std::visit([](const auto& value) { return Json(value); }, part);
        items.push_back(Json::array({std::move(key), std::move(node)}));
      }
    }
    if (is_plain) return MappingNode(std::move(entries));
    return {{"$", "dict"}, {"items", std::move(items)}};
  }

 private:
  struct Child {
    std::optional<Json> leaf;
    std::unique_ptr<Branch> branch;
    Json Node() const { return leaf ? *leaf : branch->Node(false); }
  };

  Child& ChildAt(const PathPart& part) {
    const auto [at, is_new] = children_.try_emplace(part);
    if (is_new) order_.push_back(part);
    return at->second;
  }

  // Whether its keys are 0, 1, …
  bool IsList() const {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!children_.contains(static_cast<std::int64_t>(i))) return false;
    }
    return true;
  }

  std::map<PathPart, Child> children_;
  std::vector<PathPart> order_;
};

using Leaves = std::vector<std::pair<std::string, Json>>;

TorchZip OpenItem(const ForeignState& state, const DcpPlace& place, SourceFiles& files,
                  const std::string& name) {
  try {
    const std::string where = JoinPath(state.path, kMetadata);
    return {files.Open(JoinInside(state.path, place.file, where)), place.begin, place.size, true};
  } catch (Failure& failure) {
    static_cast<void>(std::move(failure.status).AtTensor(name));
    throw;
  }
}

void AddTensor(const std::string& name, const DcpTensor& stored, const DcpMetadata& metadata,
               ForeignState& state) {
  std::vector<Box> boxes;
  for (const auto& [box, place] : stored.places) boxes.push_back(box);
  const std::string gap = GapOf(boxes, stored.shape, state.path);
  if (!gap.empty()) {
    throw Failure{Status(Code::kCorrupt, "parts of the tensor do not fit together: " + gap)
                      .AtPath(state.path)
                      .AtTensor(name)};
  }
  const auto true_shape = metadata.true_shapes.find(name);
  const bool is_flattened = true_shape != metadata.true_shapes.end();
  state.tensors[name] = {stored.dtype, is_flattened ? true_shape->second : stored.shape,
                         is_flattened ? 1 : boxes.size()};
}

// The nodes by name, in stored order, tensors first.
Leaves ReadLeaves(const DcpMetadata& metadata, ForeignState& state, SourceFiles& files,
                  bool are_lists_of_one) {
  Leaves leaves;
  for (const std::string& name : metadata.names) {
    const auto found = metadata.tensors.find(name);
    if (found == metadata.tensors.end()) continue;
    AddTensor(name, found->second, metadata, state);
    leaves.emplace_back(name, TensorNode(name));
  }
  std::map<std::string, std::uint64_t> unread;  // bytes of files
  for (const std::string& name : metadata.names) {
    const auto found = metadata.objects.find(name);
    if (found == metadata.objects.end()) continue;
    const TorchZip archive = OpenItem(state, found->second, files, name);
    // Each has bytes of its own; one that many share would be read again and again.
    const auto left = unread.try_emplace(found->second.file, archive.file().size()).first;
    if (left->second < found->second.size) {
      Fail(Code::kCorrupt, archive.path(), "the items of the file have more bytes than it has");
    }
    left->second -= found->second.size;
    const Pickled* root = &archive.root();
    if (are_lists_of_one) {
      if (!root->is(Pickled::Kind::kList) || root->parts()->items.size() != 1) {
        Fail(Code::kCorrupt, archive.path(),
             "the item is no list of one object, as which Megatron stores it");
      }
      root = root->parts()->items.front();
    }
    auto node = TorchValues(archive, state).NodeOrNothing(*root, {name});
    if (node) leaves.emplace_back(name, *std::move(node));
  }
  return leaves;
}

// Parts that two ranks stored under one name have to be the same.
void CheckSame(const DcpPlace& first, const DcpPlace& other, const ForeignState& state,
               SourceFiles& files, const std::string& name, int rank) {
  if (first == other) return;
  const auto digests = OpenItem(state, first, files, name).Digests();
  if (OpenItem(state, other, files, name).Digests() != digests) {
    throw Failure{Status(Code::kMismatch,
                         fmt::format("rank {} stored other bytes than a rank before it", rank))
                      .AtPath(state.path)
                      .AtTensor(name)};
  }
  for (const auto& [entry, size, crc] : digests) {
    if (crc || size == 0) continue;
    throw Failure{Status(Code::kUnsupported,
                         fmt::format("rank {} and one before it stored it without a CRC-32, so "
                                     "nobody can say if they agree",
                                     rank))
                      .AtPath(state.path)
                      .AtTensor(name)};
  }
}

// Metadata that each rank wrote for itself.
DcpMetadata ReadRanks(const ForeignState& state, const std::set<int>& ranks, SourceFiles& files) {
  DcpMetadata merged;
  for (const int rank : ranks) {
    const std::string name_of_file = fmt::format("__{}{}", rank, kMetadata);
    const DcpMetadata own = ReadDcpMetadata(*files.Open(JoinPath(state.path, name_of_file)));
    for (const std::string& name : own.names) {
      const bool is_new = !merged.tensors.contains(name) && !merged.objects.contains(name);
      if (is_new) merged.names.push_back(name);
    }
    for (const auto& [name, stored] : own.tensors) {
      DcpTensor& before =
          merged.tensors.try_emplace(name, DcpTensor{stored.dtype, stored.shape, {}}).first->second;
      if (before.dtype != stored.dtype || before.shape != stored.shape) {
        throw Failure{Status(Code::kMismatch,
                             fmt::format("dtype and shape are {} {} on rank {}, {} {} before",
                                         DTypeName(stored.dtype), ShapeToString(stored.shape), rank,
                                         DTypeName(before.dtype), ShapeToString(before.shape)))
                          .AtPath(state.path)
                          .AtTensor(name)};
      }
      for (const auto& [box, place] : stored.places) {
        const DcpPlace& first = before.places.try_emplace(box, place).first->second;
        CheckSame(first, place, state, files, name, rank);
      }
    }
    for (const auto& [name, place] : own.objects) {
      const DcpPlace& first = merged.objects.try_emplace(name, place).first->second;
      CheckSame(first, place, state, files, name, rank);
    }
    for (const auto& [name, path] : own.paths) merged.paths[name] = path;
  }
  return merged;
}

// What each file is for.
void Describe(const DcpMetadata& metadata, const SourceFiles& files, ForeignState& state) {
  std::set<std::string> used;
  for (const auto& [name, stored] : metadata.tensors) {
    for (const auto& [box, place] : stored.places) used.insert(place.file);
  }
  for (const auto& [name, place] : metadata.objects) used.insert(place.file);
  std::map<std::string, std::uint64_t> sizes;
  for (const SourceEntry& entry : files.List(state.path)) sizes[entry.name] = entry.size;
  for (const std::string& name : used) {
    if (sizes.contains(name)) continue;
    std::uint64_t size = 0;
    const std::size_t slash = name.rfind('/');
    if (slash != name.npos) {
      for (const SourceEntry& entry : files.List(JoinPath(state.path, name.substr(0, slash)))) {
        if (entry.name == name.substr(slash + 1)) size = entry.size;
      }
    }
    sizes[name] = size;
  }
  for (const auto& [name, size] : sizes) {
    std::string meaning = "not part of the checkpoint, not read";
    if (used.contains(name)) {
      meaning = size == 0 ? "MISSING or empty: the index names it"
                          : "tensors and values, each a zip of torch.save";
    } else if (name == kMetadata || RankOf(name)) {
      meaning = "index: a pickle that says which tensor is where";
    } else if (name.ends_with(".distcp")) {
      meaning = "left over: the index does not name it";
    } else if (name == ".metadata.tmp" || name == ".metadata.bck") {
      meaning = "left over from a save";
    }
    state.files.push_back({name, size, std::move(meaning)});
  }
}

}  // namespace

bool IsDcp(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, [](const SourceEntry& entry) {
    return entry.name == kMetadata ||
           (entry.name.starts_with("__") && entry.name.ends_with(kMetadata));
  });
}

ForeignState ReadDcp(const std::string& path, SourceFiles& files) {
  ForeignState state{.format = "dcp", .path = path, .digest = std::string(kDigest)};
  std::set<int> ranks;
  bool has_metadata = false;
  for (const SourceEntry& entry : files.List(path)) {
    has_metadata |= entry.name == kMetadata;
    if (const auto rank = RankOf(entry.name)) ranks.insert(*rank);
  }
  const DcpMetadata metadata = has_metadata
                                   ? ReadDcpMetadata(*files.Open(JoinPath(path, kMetadata)))
                                   : ReadRanks(state, ranks, files);
  Branch root;
  for (auto& [name, node] : ReadLeaves(metadata, state, files, false)) {
    const auto found = metadata.paths.find(name);
    const ValuePath at = found == metadata.paths.end() ? ValuePath{name} : found->second;
    try {
      root.Put(at, std::move(node));
    } catch (const std::string& message) {
      throw Failure{Status(Code::kCorrupt, message).AtPath(path).AtObject(TextOf(at))};
    }
  }
  state.tree = root.Node(true);
  Describe(metadata, files, state);
  ReadBeside(false, files, state);
  return state;
}

std::optional<std::string> NewestIteration(const std::string& path, SourceFiles& files) {
  for (const SourceEntry& entry : files.List(path)) {
    if (entry.name != kLatest || !entry.is_file) continue;
    constexpr std::uint64_t kBytesMax = 32;
    const auto file = files.Open(JoinPath(path, kLatest));
    std::string text = file->Read(0, std::min(file->size(), kBytesMax));
    const auto is_space = [](char c) {
      return std::string_view(" \t\n\r\v\f").find(c) != std::string_view::npos;
    };
    while (!text.empty() && is_space(text.back())) text.pop_back();
    while (!text.empty() && is_space(text.front())) text.erase(0, 1);
    if (text == "release") return JoinPath(path, text);
    const bool is_number =
        !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos;
    if (!is_number) {
      Fail(Code::kCorrupt, file->path(),
           "it names the iteration '{}', expected a number or release", Printable(text));
    }
    return JoinPath(path, fmt::format("iter_{:07}", std::stoull(text)));
  }
  return std::nullopt;
}

bool IsMegatron(const std::string& path, SourceFiles& files) {
  for (const SourceEntry& entry : files.List(path)) {
    if (entry.name != kMarker || !entry.is_file) continue;
    const auto file = files.Open(JoinPath(path, kMarker));
    const Json content =
        Json::parse(file->Read(0, std::min(file->size(), kMarkerBytesMax)), nullptr, false);
    if (!content.is_object() || !content.contains("sharded_backend")) return false;
    const Json& backend = content["sharded_backend"];
    if (backend == "torch_dist") return true;
    Fail(Code::kUnsupported, file->path(),
         "a checkpoint of Megatron in the format {}, expected torch_dist",
         PythonJson(backend).substr(0, 40));
  }
  return false;
}

ForeignState ReadMegatron(const std::string& path, SourceFiles& files) {
  ForeignState state{.format = "megatron", .path = path, .digest = std::string(kDigest)};
  const std::vector<SourceEntry> entries = files.List(path);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(entries, name, &SourceEntry::name) != entries.end();
  };
  if (!has(kMetadata)) Fail(Code::kIncomplete, path, "{} is missing", kMetadata);
  const DcpMetadata metadata = ReadDcpMetadata(*files.Open(JoinPath(path, kMetadata)));
  Leaves leaves = ReadLeaves(metadata, state, files, true);
  const bool has_common =
      metadata.tensors.contains(kCommonKey) || metadata.objects.contains(kCommonKey);
  if (has(kCommon) && !has_common) {
    CheckLinks(path, kCommon);
    const auto file = files.Open(JoinPath(path, kCommon));
    const TorchZip archive(file, 0, file->size(), true);
    auto node = TorchValues(archive, state).NodeOrNothing(archive.root(), {kCommonKey});
    if (node) leaves.emplace_back(kCommonKey, *std::move(node));
  }
  for (const auto& [name, node] : leaves) {
    if (name != kCommonKey || !node.is_object() || !node.contains("iteration")) continue;
    const Json& iteration = node["iteration"];
    if (iteration.is_number_integer() && iteration.get<std::int64_t>() >= 0) {
      state.step = iteration.get<std::uint64_t>();
    }
  }
  state.tree = MappingNode(std::move(leaves));
  Describe(metadata, files, state);
  for (ForeignFile& file : state.files) {
    if (file.name == kMarker) file.meaning = "marker of a finished save, with its format";
    if (file.name == kCommon) {
      file.meaning = "common state: arguments, iteration, what the optimizer does not shard";
    }
    if (file.name == "integrity.json") file.meaning = "digests of the files, not checked";
  }
  ReadBeside(false, files, state);
  return state;
}

}  // namespace sealpoint::tools
