// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_CHUNK_SCAN_H_
#define SEALPOINT_READERS_VERIFY_CHUNK_SCAN_H_

#include "lib/pipeline/thread_pool.h"
#include "readers/verify/blob_check.h"

namespace sealpoint::internal::verify {

// Verifies the chunks of a unit and the padding between them, in one pass over their bytes.
// Findings go to the context.
void ScanChunks(const BlobCheckInput& input, const ScanUnit& unit, Worker& worker,
                pipeline::ThreadPool& io);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_CHUNK_SCAN_H_
