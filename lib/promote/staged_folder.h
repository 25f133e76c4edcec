// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_STAGED_FOLDER_H_
#define SEALPOINT_LIB_PROMOTE_STAGED_FOLDER_H_

#include <optional>
#include <string>

#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// The local copies of a series: they lie in a folder of their own below the local place, with a
// record of the place that they are to go to (spec/staged.md, R-STG-13).

namespace sealpoint::internal::promote {

inline constexpr std::string_view kStagedRecordName = "sealpoint.staged";

struct StagedFolder {
  std::string path{};    // below the local place
  std::string series{};  // the final place, without links
};

// Where the copies of a series lie. Nothing is made. Errors: those of Storage::Locate.
Result<StagedFolder> StagedFolderOf(const Storage& storage, const std::string& local,
                                    const std::string& final_series);

// Makes the folder and its record, durably. Errors: InvalidArgument (R-STG-13: it has the record of
// another series), Io, NoSpace.
Status MakeStagedFolder(Storage& storage, const StagedFolder& folder);

// The series of the record in a folder; nothing if it has none. Errors: Io.
Result<std::optional<std::string>> RecordedSeries(const Storage& storage, const std::string& path);

// R-STG-08: the final directory is another place, and its marker is that of the local one, byte for
// byte. Errors: InvalidArgument, AlreadyExists, those of reading the two.
Status CheckIsCopy(const Storage& storage, const std::string& local, const std::string& final);
// R-STG-08: the checkpoint is whole and durable there. Errors: those of opening and syncing it.
Status CheckIsDurable(const Storage& storage, const std::string& final, const Limits& limits);

}  // namespace sealpoint::internal::promote

#endif  // SEALPOINT_LIB_PROMOTE_STAGED_FOLDER_H_
