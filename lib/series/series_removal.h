// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_SERIES_REMOVAL_H_
#define SEALPOINT_LIB_SERIES_SERIES_REMOVAL_H_

#include <vector>

#include "sealpoint/series.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// R-SER-11: of the committed ones in [begin, end), newest first, one is whole, and its directory is
// synced. Errors: InvalidArgument, those of the sync.
Status MakeSureOfANewerOne(const Storage& storage, std::vector<SeriesEntry>::const_iterator begin,
                           std::vector<SeriesEntry>::const_iterator end);

// Removes a checkpoint in the order of R-SER-06. Precondition: MakeSureOfANewerOne. Errors:
// InvalidArgument (a symbolic link), NotFound, Io.
Status DeleteCommitted(Storage& storage, const std::string& series, const SeriesEntry& entry);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SERIES_SERIES_REMOVAL_H_
