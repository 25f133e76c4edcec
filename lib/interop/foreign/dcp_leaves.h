// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_DCP_LEAVES_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_DCP_LEAVES_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/interop/foreign/dcp_metadata.h"
#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/torch_zip.h"

// Contents of the items of a torch.distributed.checkpoint directory.

namespace sealpoint::internal::foreign {

inline constexpr const char* kMetadata = ".metadata";
inline constexpr std::string_view kDcpDigest =
    "CRC-32 of the zips, one per tensor and rank; none for .metadata";

// The number of "__7.metadata".
std::optional<int> RankOf(std::string_view name);

TorchZip OpenItem(const std::string& directory, const DcpPlace& place, SourceFiles& files);

// Adds a tensor to the state, under a name of its own. Throws Corrupt (its parts do not tile it).
void AddTensor(const std::string& name, const DcpTensor& stored, const Shape* true_shape,
               SourceFiles& files, ForeignCheckpoint& state);

// Returns the node of the value of an item at this path and adds its tensors; empty if it is left
// out. For a list of one element, the node of the element.
std::optional<ForeignNode> ReadItem(const TorchZip& archive, ValuePath path, bool is_list_of_one,
                                    const SourceFiles& files, ForeignCheckpoint& state);

// Returns the result of `read`. If it throws and reading continues: Unread, with the state
// restored.
template <typename Read>
std::optional<ForeignNode> NodeOrUnread(SourceFiles& files, ForeignCheckpoint& state,
                                        const std::string& name, const Read& read) {
  const std::uint64_t used = files.budget().used();
  const std::size_t notes = state.notes.size();
  const std::size_t unread = state.unread.size();
  try {
    return read();
  } catch (Failure& failure) {
    const Place& place = failure.status.place();
    if (place.tensor.empty() && place.object.empty()) {
      static_cast<void>(std::move(failure.status).AtObject(name));
    }
    if (!files.options().goes_on) throw;
    state.notes.resize(notes);
    state.unread.resize(unread);
    files.budget().Release(files.budget().used() - used);
    state.unread.push_back({.error = std::move(failure.status)});
    return ForeignNode::Unread{static_cast<std::uint32_t>(unread)};
  }
}

// The nodes by name: unreadable ones, then tensors, then objects, in stored order.
ForeignNode::Members ReadLeaves(const DcpMetadata& metadata, bool are_lists_of_one,
                                SourceFiles& files, ForeignCheckpoint& state);

// The files that the metadata names.
std::set<std::string> FilesOf(const DcpMetadata& metadata);
// Describes the purpose of each file.
void Describe(const std::set<std::string>& used, SourceFiles& files, ForeignCheckpoint& state);
// The first parts of their paths, and these names.
std::set<std::string> OwnNames(const std::set<std::string>& used, std::set<std::string> others);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_DCP_LEAVES_H_
