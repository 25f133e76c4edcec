// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_REWRITE_H_
#define SEALPOINT_LIB_REPACK_REWRITE_H_

#include <functional>
#include <string>

#include "lib/container/open_checkpoint.h"
#include "lib/repack/tasks.h"
#include "sealpoint/repack.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::repack {

struct MadeCheckpoint {
  container::CommittedFiles files;
  bool was_committed = false;
};

// Commits a checkpoint with `make`, unless an earlier call did: `directory` then has a committed
// one with the `repack.` entries of `provenance`. Makes it durable and removes leftovers. Errors:
// AlreadyExists (R-CMT-01: it has another marker), Io, those of `make`.
Result<MadeCheckpoint> MakeOnce(const Storage& storage, Directory& directory,
                                const ProvenanceList& provenance, const Limits& limits,
                                const std::function<Status()>& make);

// Makes the checkpoint in `to`, or detects that an earlier call made it: a committed one with the
// same `repack.from` and `repack.how`. Files of a dead call may remain, and another call may still
// be running: new blobs therefore have new names, one marker is published, and files not pinned by
// it are removed afterwards.
Result<RepackReport> Rewrite(RewriteJob job, const std::string& to, const RepackOptions& options);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_REWRITE_H_
