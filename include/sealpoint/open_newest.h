// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_OPEN_NEWEST_H_
#define SEALPOINT_OPEN_NEWEST_H_

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/communicator.h"
#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

struct OpenNewestOptions {
  // check_files is always on.
  OpenOptions open{};
  // Fall back to an older checkpoint if the newest is damaged or cannot be identified; skipped
  // checkpoints are reported. If false, that is an error. Must be the same on all ranks (rank 0's
  // value counts).
  bool allow_fallback = false;
};

// A skipped checkpoint that may be newer than the opened one.
struct PassedOverCheckpoint {
  std::string name{};  // of its directory in the series
  Status problem{};
  friend bool operator==(const PassedOverCheckpoint&, const PassedOverCheckpoint&) = default;
};

struct NewestCheckpoint {
  // Null if no checkpoint was ever committed in this series: start training from the beginning. No
  // error has this form.
  std::unique_ptr<CollectiveReader> reader{};
  std::string name{};  // directory name in the series; empty without a reader
  std::vector<PassedOverCheckpoint> passed_over{};
};

// Opens the newest checkpoint of a series with an intact marker and index and correct blob lengths
// (Series::Newest) on all ranks. Collective: all ranks call with the same directory, rank 0
// decides, and all get the same result. A directory that does not exist is an empty series. If
// another process deletes the checkpoint during the call, the series is read again. Errors: those
// of Series::Newest (except NotFound) and CollectiveReader::Open; InvalidArgument (the ranks name
// different directories); Comm, Timeout.
SEALPOINT_EXPORT Result<NewestCheckpoint> OpenNewest(Communicator& comm,
                                                     const std::string& series_directory,
                                                     const OpenNewestOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_OPEN_NEWEST_H_
