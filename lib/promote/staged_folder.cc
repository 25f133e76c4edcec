// SPDX-License-Identifier: Apache-2.0
#include "lib/promote/staged_folder.h"

#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/storage/durable.h"
#include "lib/storage/path.h"
#include "lib/storage/place.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::promote {
namespace {

constexpr std::string_view kRecordStart = "sealpoint staged copies of ";
constexpr std::size_t kRecordSizeMax = 64 * 1024;
constexpr std::size_t kNameSizeMax = 100;
constexpr std::size_t kDigestDigits = 8;

std::string RecordOf(const std::string& series) { return StrCat(kRecordStart, series, "\n"); }

Status OfAnotherSeries(const StagedFolder& folder, const std::optional<std::string>& found) {
  return RuleError(Code::kInvalidArgument, "R-STG-13", "the folder holds copies ",
                   found ? StrCat("of the series ", *found) : "without a record of their series",
                   ", expected those of ", folder.series)
      .AtPath(folder.path);
}

}  // namespace

Result<StagedFolder> StagedFolderOf(const Storage& storage, const std::string& local,
                                    const std::string& final_series) {
  SEALPOINT_ASSIGN_OR_RETURN(Location place, storage.Locate(final_series));
  const std::string name(storage::LastComponent(place.path).substr(0, kNameSizeMax));
  const std::string digest = ComputeDigest(AsBytes(std::string_view(place.path))).ToHex();
  return StagedFolder{
      .path = JoinPath(local, StrCat(name.empty() ? "root" : name, "-",
                                     std::string_view(digest).substr(0, kDigestDigits))),
      .series = std::move(place.path)};
}

Status MakeStagedFolder(Storage& storage, const StagedFolder& folder) {
  SEALPOINT_RETURN_IF_ERROR(storage.CreateDirectories(folder.path));
  SEALPOINT_ASSIGN_OR_RETURN(const auto found, RecordedSeries(storage, folder.path));
  if (found == folder.series) return {};
  if (found) return OfAnotherSeries(folder, found);
  SEALPOINT_ASSIGN_OR_RETURN(const auto directory, storage.OpenDirectory(folder.path));
  const std::string record = RecordOf(folder.series);
  const Status written =
      storage::WriteFileDurably(*directory, kStagedRecordName, AsBytes(std::string_view(record)));
  if (written.ok()) return directory->Sync();
  if (written.code() != Code::kAlreadyExists) return written;
  // Another rank of this node makes it at the same time.
  return {};
}

Result<std::optional<std::string>> RecordedSeries(const Storage& storage, const std::string& path) {
  const auto directory = storage.OpenDirectory(path);
  if (directory.error().code() == Code::kNotFound) return std::optional<std::string>();
  SEALPOINT_RETURN_IF_ERROR(directory.status());
  const auto file = (*directory)->OpenForRead(kStagedRecordName, IoMode::kBuffered);
  if (file.error().code() == Code::kNotFound) return std::optional<std::string>();
  SEALPOINT_RETURN_IF_ERROR(file.status());
  Bytes bytes(std::min<std::uint64_t>((*file)->size_bytes(), kRecordSizeMax));
  SEALPOINT_RETURN_IF_ERROR((*file)->ReadAt(0, bytes));
  std::string_view text = AsText(bytes);
  if (!text.starts_with(kRecordStart) || !text.ends_with('\n')) return std::optional<std::string>();
  text.remove_prefix(kRecordStart.size());
  text.remove_suffix(1);
  return std::optional(std::string(text));
}

Status CheckIsCopy(const Storage& storage, const std::string& local, const std::string& final) {
  SEALPOINT_RETURN_IF_ERROR(storage::CheckApart(storage, local, storage, final));
  SEALPOINT_ASSIGN_OR_RETURN(const auto there, container::OpenCheckpointDirectory(storage, final));
  SEALPOINT_ASSIGN_OR_RETURN(const container::MarkerFile expected, container::ReadMarker(*there));
  SEALPOINT_ASSIGN_OR_RETURN(const auto here, container::OpenCheckpointDirectory(storage, local));
  const auto marker = container::ReadMarker(*here);
  // A node that died before it published its own has none.
  if (marker.error().code() == Code::kUncommitted) return {};
  SEALPOINT_RETURN_IF_ERROR(marker.status());
  if (marker->bytes == expected.bytes) return {};
  return RuleError(Code::kAlreadyExists, "R-STG-08", "the marker is not that of ", final)
      .AtPath(local);
}

Status CheckIsDurable(const Storage& storage, const std::string& final, const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(const container::CommittedFiles files,
                             container::OpenCommitted(storage, final, limits, true));
  return files.directory->Sync();
}

}  // namespace sealpoint::internal::promote
