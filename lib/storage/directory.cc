// SPDX-License-Identifier: Apache-2.0
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/storage.h"

namespace sealpoint {

Status Directory::ForEachEntry(const std::function<bool(const EntryInfo& entry)>& visit) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, List());
  for (const EntryInfo& entry : entries) {
    if (!visit(entry)) break;
  }
  return {};
}

Result<std::vector<Result<EntryInfo>>> Directory::StatEach(
    std::span<const std::string> names) const {
  std::vector<Result<EntryInfo>> found;
  found.reserve(names.size());
  for (const std::string& name : names) found.push_back(Stat(name));
  return found;
}

Status Directory::PutIfAbsent(std::string_view name, ByteSpan /*content*/) {
  return internal::MakeError(Code::kUnsupported,
                             "this storage has no conditional put (PublishMethod::kPutIfAbsent)")
      .AtPath(JoinPath(path(), name));
}

Status Directory::Replace(std::string_view name, ByteSpan /*content*/) {
  return Status(Code::kUnsupported, "this storage cannot replace a file")
      .AtPath(JoinPath(path(), name));
}

Status Directory::LinkFrom(std::string_view directory, std::string_view name,
                           std::uint64_t /*name_count_max*/) {
  return Status(Code::kUnsupported, "cannot link: the storage has no links")
      .AtPath(JoinPath(directory, name));
}

Status Storage::SyncAll(std::string_view /*path*/) { return {}; }

Status Storage::Move(std::string_view /*from*/, std::string_view to) {
  return Status(Code::kUnsupported, "this storage cannot rename").AtPath(to);
}

Result<std::vector<UnfinishedFile>> Storage::ListUnfinished(std::string_view /*path*/) const {
  return std::vector<UnfinishedFile>();
}

Status Storage::AbortUnfinished(std::string_view /*path*/, const UnfinishedFile& /*file*/) {
  return {};
}

}  // namespace sealpoint
