// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_SERIES_REMOVAL_H_
#define SEALPOINT_LIB_SERIES_SERIES_REMOVAL_H_

#include <vector>

#include "lib/series/deltas.h"
#include "sealpoint/series.h"
#include "sealpoint/storage.h"

// Removal functions take the series as an open directory instead of a path, so that a link put in
// the place of a checkpoint is never followed.

namespace sealpoint::internal::series {

// Sealpoint files in a directory of a series. Errors: those of the storage.
Result<std::vector<EntryInfo>> ListOurFiles(const Storage& storage, const SeriesEntry& entry);

// R-SER-11: of the committed ones in [begin, end), newest first, one is whole, and its directory is
// synced. A symbolic link to a checkpoint of the attempt `deleted` is none of them. Errors:
// InvalidArgument, Io.
Status MakeSureOfANewerOne(const Storage& storage, std::vector<SeriesEntry>::const_iterator begin,
                           std::vector<SeriesEntry>::const_iterator end, const AttemptId& deleted,
                           const Limits& limits = {});

// Removes the checkpoint described by `entry`, in the order of R-SER-06. If it has a `KEEP` of
// deltas, the series is listed again once that is gone. Precondition: MakeSureOfANewerOne, and
// CheckIsNotNeeded for an earlier listing. Errors: InvalidArgument (a symbolic link; it has a KEEP
// file; its marker has changed, R-SER-21; a delta needs it, R-DLT-11), NotFound (its marker no
// longer exists), Io.
Status DeleteCommitted(const Storage& storage, Directory& series, const SeriesEntry& entry,
                       DeltaIndexes& deltas);

// Removes the checkpoint in `directory`, a subdirectory `name` of `parent`, in the order of
// R-SER-06; the directory, too, unless it has other files. Errors: those of the storage.
Status RemoveWithDirectory(Directory& parent, const std::string& name, Directory& directory);

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_SERIES_REMOVAL_H_
