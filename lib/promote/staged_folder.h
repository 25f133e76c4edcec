// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_STAGED_FOLDER_H_
#define SEALPOINT_LIB_PROMOTE_STAGED_FOLDER_H_

#include <optional>
#include <string>

#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// The local copies of a series. They are stored in a separate folder below the local directory,
// with a record of their destination (spec/staged.md, R-STG-13).

namespace sealpoint::internal::promote {

inline constexpr std::string_view kStagedRecordName = "sealpoint.staged";

struct StagedFolder {
  std::string path{};    // below the local place
  std::string series{};  // the final place, without links
};

// Computes the folder of the copies of a series. Creates nothing. Errors: those of Storage::Locate.
Result<StagedFolder> StagedFolderOf(const Storage& storage, const std::string& local,
                                    const std::string& final_series);

// Makes the folder and its record, durably. Errors: InvalidArgument (R-STG-13: it has the record of
// another series), Io, NoSpace.
Status MakeStagedFolder(Storage& storage, const StagedFolder& folder);

// The series recorded in a folder; empty if it has no record. Errors: Io.
Result<std::optional<std::string>> RecordedSeries(const Storage& storage, const std::string& path);

// R-STG-08: the final directory is another one, and its marker equals the local marker byte for
// byte. Errors: InvalidArgument, AlreadyExists, those of reading the two.
Status CheckIsCopy(const Storage& storage, const std::string& local, const std::string& final);
// R-STG-08: the checkpoint is intact and durable there. Errors: those of opening and syncing it.
Status CheckIsDurable(const Storage& storage, const std::string& final, const Limits& limits);

}  // namespace sealpoint::internal::promote

#endif  // SEALPOINT_LIB_PROMOTE_STAGED_FOLDER_H_
