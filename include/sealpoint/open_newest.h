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
  // check_files is on whatever it says here.
  OpenOptions open{};
  // Go back to an older checkpoint if the newest is damaged or may not be known; what was passed
  // over is reported. Off: that is an error. The same on all ranks (rank 0's counts).
  bool allow_fallback = false;
};

// A checkpoint that may be newer than the one that was opened.
struct PassedOverCheckpoint {
  std::string name{};  // of its directory in the series
  Status problem{};
  friend bool operator==(const PassedOverCheckpoint&, const PassedOverCheckpoint&) = default;
};

struct NewestCheckpoint {
  // Null: nothing was ever committed in this series, so that training begins anew. No error ever
  // looks like this.
  std::unique_ptr<CollectiveReader> reader{};
  std::string name{};  // of the checkpoint's directory in the series; empty without a reader
  std::vector<PassedOverCheckpoint> passed_over{};
};

// Opens the newest checkpoint of a series whose marker, index and blob lengths are right
// (Series::Newest) on all ranks, or says why not. Collective: all ranks call with the same
// directory; rank 0 decides, and all get the same answer. A directory that does not exist is a
// series without a checkpoint. A checkpoint that another process deletes meanwhile is no error: the
// series is looked at again.
// Errors: those of Series::Newest (but NotFound) and CollectiveReader::Open; InvalidArgument (the
// ranks name different directories); Comm, Timeout.
SEALPOINT_EXPORT Result<NewestCheckpoint> OpenNewest(Communicator& comm,
                                                     const std::string& series_directory,
                                                     const OpenNewestOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_OPEN_NEWEST_H_
