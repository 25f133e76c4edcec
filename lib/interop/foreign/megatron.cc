// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/dcp_leaves.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/node.h"
#include "lib/interop/foreign/others.h"
#include "sealpoint/bytes.h"

// Directories of Megatron-core's torch_dist: those of DCP, with a file of the common state before
// 0.19.

namespace sealpoint::internal::foreign {
namespace {

constexpr const char* kMarker = "metadata.json";
constexpr const char* kCommon = "common.pt";
constexpr const char* kIntegrity = "integrity.json";
constexpr const char* kLatest = "latest_checkpointed_iteration.txt";
// The item of the common state since 0.19.
constexpr const char* kCommonKey = "common_state/shard_0_1";
constexpr std::uint64_t kMarkerBytesMax = 1 << 20;

std::optional<std::uint64_t> IterationOf(const ForeignNode& common) {
  const ForeignNode* const node = common.Find("iteration");
  const std::int64_t* const iteration = node != nullptr ? node->if_int() : nullptr;
  if (iteration == nullptr || *iteration < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*iteration);
}

}  // namespace

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
      Fail(Code::kCorrupt, file->path(), "it names the iteration '", Printable(text),
           "', expected a number or release");
    }
    return JoinPath(path, StrCat("iter_", Padded(std::stoull(text), 7)));
  }
  return std::nullopt;
}

bool IsMegatron(const std::string& path, SourceFiles& files) {
  for (const SourceEntry& entry : files.List(path)) {
    if (entry.name != kMarker || !entry.is_file) continue;
    const auto file = files.Open(JoinPath(path, kMarker));
    const auto content = ParseNode(file->Read(0, std::min(file->size(), kMarkerBytesMax)));
    const ForeignNode* const backend = content ? content->Find("sharded_backend") : nullptr;
    if (backend == nullptr) return false;
    if (backend->if_text() != nullptr && *backend->if_text() == "torch_dist") return true;
    // Megatron-FSDP leaves a directory of torch.distributed.checkpoint, with this marker beside.
    if (backend->if_text() != nullptr && *backend->if_text() == "fsdp_dtensor") return false;
    const std::string found =
        backend->if_text() != nullptr ? QuotedText(*backend->if_text()) : PythonJson(*backend);
    Fail(Code::kUnsupported, file->path(), "a checkpoint of Megatron in the format ",
         Printable(found.substr(0, 40)), ", expected torch_dist; ", kFromMegatron);
  }
  return false;
}

ForeignCheckpoint ReadMegatron(const std::string& path, SourceFiles& files) {
  ForeignCheckpoint state{.format = "megatron", .path = path, .digest = std::string(kDcpDigest)};
  const std::vector<SourceEntry> entries = files.List(path);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(entries, name, &SourceEntry::name) != entries.end();
  };
  if (!has(kMetadata)) Fail(Code::kIncomplete, path, kMetadata, " is missing");
  const DcpMetadata metadata =
      ReadDcpMetadata(*files.Open(JoinPath(path, kMetadata)), files.options());
  ForeignNode::Members leaves = ReadLeaves(metadata, true, files, state);
  const bool has_common =
      std::ranges::find(leaves, kCommonKey, &ForeignNode::Member::key) != leaves.end();
  if (has(kCommon) && !has_common) {
    CheckLinks(path, kCommon);
    const auto file = files.Open(JoinPath(path, kCommon));
    auto node = NodeOrUnread(files, state, kCommonKey, [&] {
      const TorchZip archive(file, 0, file->size(), true);
      return ReadItem(archive, {kCommonKey}, false, files, state);
    });
    if (node) leaves.push_back({kCommonKey, *std::move(node)});
  }
  for (const auto& [name, node] : leaves) {
    if (name == kCommonKey) state.step = IterationOf(node);
  }
  state.tree = MappingNode(std::move(leaves));
  const std::set<std::string> used = FilesOf(metadata);
  Describe(used, files, state);
  for (ForeignFile& file : state.files) {
    if (file.name == kMarker) file.meaning = "marker of a finished save, with its format";
    if (file.name == kCommon) {
      file.meaning = "common state: arguments, iteration, unsharded optimizer state";
    }
    if (file.name == kIntegrity) file.meaning = "digests of the files, not checked";
  }
  ReadBeside({.format_names = OwnNames(used, {kMetadata, kMarker, kCommon, kIntegrity})}, files,
             state);
  return state;
}

}  // namespace sealpoint::internal::foreign
