// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_REPLICA_DIGESTS_H_
#define SEALPOINT_LIB_SAVER_REPLICA_DIGESTS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/save_plan.h"
#include "sealpoint/declaration.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Digests of these shards, in their order. The digest of a shard is that of the digests of its
// chunks, so device memory, which digests chunks, and host memory have the same one. Dense memory
// of a device that computes digests is digested there; other device memory is copied to the host,
// one chunk at a time. Host memory is digested by the caller's thread and
// EngineOptions::io_thread_count others.
//
// Local. Errors: Device. Preconditions: memory is bound to all slots, and none is empty.
Result<std::vector<Digest>> DigestShards(pipeline::EngineParts& engine, const Sources& sources,
                                         std::span<const PlannedShard> shards);
// The same of all that these slots hold.
Result<std::vector<Digest>> DigestSlots(pipeline::EngineParts& engine, const Sources& sources,
                                        std::span<const std::size_t> slots);

// The digest of a list of digests.
Digest CombineDigests(std::span<const Digest> digests);

// The digest of an object: of its media type and its bytes.
Digest DigestObject(const ObjectSpec& object, ByteSpan bytes);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_REPLICA_DIGESTS_H_
