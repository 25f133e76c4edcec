// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_REWRITE_H_
#define SEALPOINT_LIB_REPACK_REWRITE_H_

#include <string>

#include "lib/repack/tasks.h"
#include "sealpoint/repack.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::repack {

// Whether an earlier call made it: `directory` has a committed checkpoint with the `repack.`
// entries of `provenance`. Errors: AlreadyExists (R-CMT-01: it has another marker), Io.
Result<bool> IsMadeAlready(const Storage& storage, const Directory& directory,
                           const ProvenanceList& provenance, const Limits& limits);

// Makes the checkpoint in `to`, or finds that an earlier call made it: a committed one with the
// same `repack.from` and `repack.how`. Of another call that died, files are left, and nothing
// says that no other is at work here: new blobs have new names, one marker is published, and then
// what it does not pin is removed.
Result<RepackReport> Rewrite(RewriteJob job, const std::string& to, const RepackOptions& options);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_REWRITE_H_
