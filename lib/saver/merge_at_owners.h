// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_MERGE_AT_OWNERS_H_
#define SEALPOINT_LIB_SAVER_MERGE_AT_OWNERS_H_

#include <span>
#include <vector>

#include "lib/writer/commit_steps.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

// How what the blobs hold gets from all ranks to rank 0, so that nothing there grows with ranks
// times tensors (spec/decisions/0011): names, shapes and regions meet at the rank that owners a
// name, and only what it merged goes on.

namespace sealpoint::internal {

// Collective. What this rank hands to rank 0: the pins of its own blobs, and the tensors and
// objects that it checked, merged. Errors are agreed on: those of MergeEntries; Comm, Timeout.
// Nothing that rank 0 waits for has left this rank when it returns.
Result<Bytes> MergeAtOwners(Communicator& comm, std::span<const BlobSummary> own,
                            const Limits& limits);

// The same in pieces, for those who have no communicator.
Bytes EncodeBlobIds(std::span<const BlobSummary> own);
// Ids of all blobs, ascending, of what each rank encoded.
Result<std::vector<BlobId>> DecodeBlobIds(std::span<const Bytes> all);
// One message per rank.
std::vector<Bytes> EncodeForOwners(std::span<const BlobSummary> own,
                                   std::span<const BlobId> all_blobs, int size);
Bytes EncodeForCommitter(std::span<const BlobSummary> own, ByteSpan part);

// What rank 0 has of all ranks.
struct GatheredParts {
  std::vector<CommittedBlob> blobs{};  // ascending by id
  std::vector<ByteSpan> parts{};       // of the messages
};
Result<GatheredParts> DecodeForCommitter(std::span<const Bytes> messages);
Result<Bytes> JoinGathered(const GatheredParts& gathered, const IndexAttributes& facts,
                           const Limits& limits);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_MERGE_AT_OWNERS_H_
