// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_WRITE_BATCH_H_
#define SEALPOINT_LIB_REPACK_WRITE_BATCH_H_

#include <cstdint>
#include <vector>

#include "lib/repack/tasks.h"
#include "lib/tensor_stream/stream.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::repack {

// Future shards: the pieces of all tensors of the job with elements, in order. Errors: those of
// Checkpoint::ForEachShard.
Result<std::vector<tensor_stream::Piece>> CutIntoPieces(const RewriteJob& job,
                                                        const tensor_stream::PieceLimits& limits);

// Reads such pieces from all sources that have them, verifies, compares or sums them up, and adds
// them to the writer. Errors: Mismatch (a tensor differs and is not averaged), those of
// Checkpoint::Load and of the writer.
Status WriteBatch(const RewriteJob& job, const tensor_stream::Batch& batch, BlobWriter& writer);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_WRITE_BATCH_H_
