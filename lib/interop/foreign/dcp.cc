// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/name_pattern.h"
#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/dcp_leaves.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/node.h"
#include "sealpoint/bytes.h"

// Directories of torch.distributed.checkpoint.

namespace sealpoint::internal::foreign {
namespace {

// A mapping or a list, while it is not known which it is.
class Branch {
 public:
  void Put(const ValuePath& path, ForeignNode node) {
    Branch* branch = this;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      Child& child = branch->ChildAt(path[i]);
      if (child.leaf) throw std::string("a value is nested in another one's path");
      if (child.branch == nullptr) child.branch = std::make_unique<Branch>();
      branch = child.branch.get();
    }
    Child& child = branch->ChildAt(path.back());
    if (child.leaf || child.branch != nullptr) {
      throw std::string("duplicate path in the state");
    }
    child.leaf = std::move(node);
  }

  // Once: leaves are moved.
  ForeignNode Node(bool is_root) {
    if (!is_root && IsList()) {
      ForeignNode::List list;
      for (std::size_t i = 0; i < order_.size(); ++i) {
        list.push_back(children_.at(static_cast<std::int64_t>(i)).Node());
      }
      return list;
    }
    const bool is_plain = std::ranges::all_of(
        order_, [](const PathPart& part) { return std::holds_alternative<std::string>(part); });
    ForeignNode::Members entries;
    ForeignNode::List items;
    for (const PathPart& part : order_) {
      ForeignNode node = children_.at(part).Node();
      if (is_plain) {
        entries.push_back({std::get<std::string>(part), std::move(node)});
      } else {
        ForeignNode key = std::visit([](const auto& value) { return ForeignNode(value); }, part);
        items.push_back(PairNode(std::move(key), std::move(node)));
      }
    }
    if (is_plain) return MappingNode(std::move(entries));
    return {{"$", "dict"}, {"items", std::move(items)}};
  }

 private:
  struct Child {
    std::optional<ForeignNode> leaf;
    std::unique_ptr<Branch> branch;
    ForeignNode Node() { return leaf ? std::move(*leaf) : branch->Node(false); }
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

std::string DigestText(const TorchZip::Digest& digest) {
  const auto& [name, size, crc] = digest;
  return StrCat(crc ? HexText(*crc, 8) : "none", " of '", Printable(name), "'");
}

// Metadata that each rank wrote for itself.
class Ranks {
 public:
  Ranks(const std::set<int>& ranks, SourceFiles& files, ForeignCheckpoint& state)
      : files_(files), state_(state) {
    for (const std::string& text : files.options().per_rank) {
      patterns_.push_back(Take(NamePattern::Parse(text)));
    }
    for (const int rank : ranks) {
      const std::string path = JoinPath(state.path, StrCat("__", rank, kMetadata));
      by_rank_.emplace(rank, ReadDcpMetadata(*files.Open(path), files.options()));
    }
  }

  // The nodes of what each rank has of its own, whose values the state gets; it is taken out of the
  // metadata. Throws Mismatch (a rank does not have it).
  ForeignNode::Members TakeOwn() {
    std::set<std::string> names;
    for (const auto& [rank, metadata] : by_rank_) {
      for (const std::string& name : metadata.names) {
        if (IsPerRank(name) && !metadata.unread.contains(name)) names.insert(name);
      }
    }
    const int count = static_cast<int>(by_rank_.size());
    for (int rank = 0; rank < (names.empty() ? 0 : count); ++rank) {
      ForeignNode::Members values;
      for (const std::string& name : names) values.push_back({name, TakeOne(name, rank)});
      state_.rank_values.emplace_back(std::move(values));
    }
    ForeignNode::Members nodes;
    for (const std::string& name : names) {
      nodes.push_back(
          {name, {{kNodeKind, "per_rank"}, {"size", static_cast<std::int64_t>(count)}}});
    }
    return nodes;
  }

  // What ranks have in common. Throws Mismatch (two differ).
  DcpMetadata Merge() {
    for (const auto& [rank, metadata] : by_rank_) MergeOne(rank, metadata);
    return std::move(merged_);
  }

 private:
  bool IsPerRank(const std::string& name) const {
    return std::ranges::any_of(patterns_,
                               [&](const NamePattern& pattern) { return pattern.Matches(name); });
  }

  [[noreturn]] void Differ(Code code, int rank, const std::string& name,
                           const std::string& message) const {
    throw Failure{Status(code, message).AtPath(state_.path).AtTensor(name).AtRank(rank, "")};
  }

  ForeignNode TakeOne(const std::string& name, int rank) {
    const auto found = by_rank_.find(rank);
    DcpMetadata* const metadata = found == by_rank_.end() ? nullptr : &found->second;
    if (metadata != nullptr && metadata->tensors.contains(name)) {
      const std::string of_rank = StrCat(name, ".rank", rank);
      AddTensor(of_rank, metadata->tensors.at(name), nullptr, files_, state_);
      metadata->tensors.erase(name);
      return TensorNode(of_rank);
    }
    if (metadata == nullptr || !metadata->objects.contains(name)) {
      throw Failure{MakeError(Code::kMismatch, "the rank has no value of its own")
                        .AtPath(state_.path)
                        .AtObject(name)
                        .AtRank(rank, "")};
    }
    const TorchZip archive = OpenItem(state_.path, metadata->objects.at(name), files_);
    metadata->objects.erase(name);
    const std::size_t unread = state_.unread.size();
    auto node = ReadItem(archive, {name, StrCat("rank", rank)}, false, files_, state_);
    if (state_.unread.size() > unread) throw Failure{state_.unread[unread].error};
    if (!node) {
      throw Failure{
          MakeError(Code::kUnsupported, "a per-rank value of an unknown class cannot be left out")
              .AtPath(archive.path())
              .AtObject(StrCat(name, ".rank", rank))};
    }
    return *std::move(node);
  }

  void MergeOne(int rank, const DcpMetadata& added) {
    for (const std::string& name : added.names) {
      const bool is_unread = !added.tensors.contains(name) && !added.objects.contains(name);
      const bool is_new = !merged_.tensors.contains(name) && !merged_.objects.contains(name);
      if (is_new && !is_unread) merged_.names.push_back(name);
    }
    for (const auto& [name, stored] : added.tensors) {
      DcpTensor& before =
          merged_.tensors.try_emplace(name, DcpTensor{stored.dtype, stored.shape, {}})
              .first->second;
      if (before.dtype != stored.dtype || before.shape != stored.shape) {
        Differ(Code::kMismatch, rank, name,
               StrCat("dtype and shape are ", DTypeName(stored.dtype), " ",
                      ShapeToString(stored.shape), " on rank ", rank, ", ", DTypeName(before.dtype),
                      " ", ShapeToString(before.shape), " before"));
      }
      for (const auto& [box, place] : stored.places) {
        CheckSame(before.places.try_emplace(box, place).first->second, place, name, rank);
      }
    }
    for (const auto& [name, place] : added.objects) {
      CheckSame(merged_.objects.try_emplace(name, place).first->second, place, name, rank);
    }
    for (const auto& [name, path] : added.paths) merged_.paths[name] = path;
    for (const auto& [name, error] : added.unread) merged_.unread.insert_or_assign(name, error);
    merged_.dropped.insert(added.dropped.begin(), added.dropped.end());
    merged_.dropped_files.insert(added.dropped_files.begin(), added.dropped_files.end());
  }

  std::vector<TorchZip::Digest> DigestsOf(const DcpPlace& place, const std::string& name) {
    try {
      return OpenItem(state_.path, place, files_).Digests();
    } catch (Failure& failure) {
      static_cast<void>(std::move(failure.status).AtTensor(name));
      throw;
    }
  }

  // Parts that two ranks stored under one name have to be the same.
  void CheckSame(const DcpPlace& first, const DcpPlace& other, const std::string& name, int rank) {
    if (first == other) return;
    const auto digests = DigestsOf(first, name);
    const auto others = DigestsOf(other, name);
    if (others != digests) {
      const auto [found, expected] = std::ranges::mismatch(others, digests);
      Differ(Code::kMismatch, rank, name,
             StrCat("rank ", rank, " stored different bytes than an earlier rank: CRC-32 ",
                    found == others.end() ? "of nothing" : DigestText(*found), ", expected ",
                    expected == digests.end() ? "of nothing" : DigestText(*expected),
                    "; if it differs by rank, name it in per_rank"));
    }
    for (const auto& [entry, size, crc] : digests) {
      if (crc || size == 0) continue;
      Differ(Code::kUnsupported, rank, name,
             StrCat("rank ", rank,
                    " and an earlier rank stored it without a CRC-32, so they cannot be compared"));
    }
  }

  SourceFiles& files_;
  ForeignCheckpoint& state_;
  std::vector<NamePattern> patterns_;
  std::map<int, DcpMetadata> by_rank_;
  DcpMetadata merged_;
};

}  // namespace

bool IsDcp(const std::vector<SourceEntry>& entries) {
  return std::ranges::any_of(entries, [](const SourceEntry& entry) {
    return entry.name == kMetadata ||
           (entry.name.starts_with("__") && entry.name.ends_with(kMetadata));
  });
}

ForeignCheckpoint ReadDcp(const std::string& path, SourceFiles& files) {
  ForeignCheckpoint state{.format = "dcp", .path = path, .digest = std::string(kDcpDigest)};
  std::set<int> ranks;
  std::set<std::string> indices;
  for (const SourceEntry& entry : files.List(path)) {
    const auto rank = RankOf(entry.name);
    if (rank) ranks.insert(*rank);
    if (rank || entry.name == kMetadata) indices.insert(entry.name);
  }
  DcpMetadata metadata;
  ForeignNode::Members leaves;
  if (indices.contains(kMetadata)) {
    metadata = ReadDcpMetadata(*files.Open(JoinPath(path, kMetadata)), files.options());
  } else {
    Ranks by_rank(ranks, files, state);
    leaves = by_rank.TakeOwn();
    metadata = by_rank.Merge();
  }
  for (ForeignNode::Member& leaf : ReadLeaves(metadata, false, files, state)) {
    leaves.push_back(std::move(leaf));
  }
  Branch root;
  for (auto& [name, node] : leaves) {
    const auto found = metadata.paths.find(name);
    const ValuePath at = found == metadata.paths.end() ? ValuePath{name} : found->second;
    try {
      root.Put(at, std::move(node));
    } catch (const std::string& message) {
      throw Failure{Status(Code::kCorrupt, message).AtPath(path).AtObject(TextOf(at))};
    }
  }
  state.tree = root.Node(true);
  const std::set<std::string> used = FilesOf(metadata);
  Describe(used, files, state);
  ReadBeside({.format_names = OwnNames(used, std::move(indices))}, files, state);
  return state;
}

}  // namespace sealpoint::internal::foreign
