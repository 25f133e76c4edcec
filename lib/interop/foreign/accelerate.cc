// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/node.h"

// Directories of accelerate's save_state for FSDP: a DCP directory for the model, one for the
// optimizer, and files of torch.save for everything else.

namespace sealpoint::internal::foreign {
namespace {

// The directories of the first model and its optimizer, and the key of everything in each.
struct Part {
  std::string_view directory;
  std::string_view key;
};
constexpr std::array<Part, 2> kParts = {Part{"pytorch_model_fsdp_0", "model"},
                                        Part{"optimizer_0", "optimizer"}};

bool HasDirectory(const std::vector<SourceEntry>& entries, std::string_view name) {
  return std::ranges::any_of(entries, [name](const SourceEntry& entry) {
    return entry.kind == EntryKind::kDirectory && entry.name == name;
  });
}

void Merge(const Part& part, ForeignCheckpoint read, ForeignCheckpoint& state) {
  ForeignNode::Members* const members = read.tree.if_object();
  if (members == nullptr || !KindOf(read.tree).empty() || members->size() != 1 ||
      members->front().key != part.key || !read.rank_values.empty()) {
    Fail(Code::kUnsupported, read.path, "the directory holds ", BriefOf(read.tree),
         ", expected only the entry ", part.key);
  }
  if (!read.unread.empty()) throw Failure{std::move(read.unread.front().error)};
  state.tree.if_object()->push_back(std::move(members->front()));
  state.tensors.merge(read.tensors);
  state.objects.merge(read.objects);
  state.digest = std::move(read.digest);
  std::ranges::move(read.notes, std::back_inserter(state.notes));
  const auto within = [&part](const std::string& name) { return JoinPath(part.directory, name); };
  for (ForeignFile& file : read.files) {
    state.files.push_back({within(file.name), file.size_bytes, std::move(file.meaning)});
  }
  for (auto& entry : read.left_out) {
    if (entry.name.starts_with("../")) continue;  // read here
    entry.name = within(entry.name);
    state.left_out.push_back(std::move(entry));
  }
}

}  // namespace

bool IsAccelerate(const std::vector<SourceEntry>& entries) {
  return HasDirectory(entries, kParts.front().directory) &&
         !HasDirectory(entries, "pytorch_model_fsdp_1");
}

ForeignCheckpoint ReadAccelerate(const std::string& path, SourceFiles& files) {
  ForeignCheckpoint state{.format = "accelerate", .path = path};
  state.tree = ForeignNode::Members();
  BesideOptions beside{.may_link = true};
  const std::vector<SourceEntry> entries = files.List(path);
  std::uint64_t stored = 0;
  for (const SourceEntry& entry : entries) stored = CappedAdd(stored, entry.size);
  std::vector<Part> parts;
  for (const Part& part : kParts) {
    if (!HasDirectory(entries, part.directory)) continue;
    const std::vector<SourceEntry> inner = files.List(JoinPath(path, part.directory));
    if (!IsDcp(inner)) {
      Fail(Code::kIncomplete, JoinPath(path, part.directory),
           "directory has no .metadata: an unfinished save, or a part of its files");
    }
    for (const SourceEntry& entry : inner) stored = CappedAdd(stored, entry.size);
    parts.push_back(part);
  }
  files.budget().Allow(stored);
  for (const Part& part : parts) {
    Merge(part, ReadDcp(JoinPath(path, part.directory), files), state);
    beside.format_names.emplace(part.directory);
  }
  ReadBeside(beside, files, state);
  return state;
}

}  // namespace sealpoint::internal::foreign
