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

// How the manifests of all ranks become one index at rank 0 without anything there that grows with
// ranks times tensors (spec/decisions/0011): every rank sends what its blobs hold under a name to
// the rank that owns this name; the owner merges it; rank 0 gets only merged parts.

namespace sealpoint::internal::saver {

// Collective. Returns what this rank must send to rank 0: the pins of its own blobs, and the
// tensors and objects whose names it owns, merged. Errors are the same on all ranks: those of
// MergeEntries; Comm, Timeout. When it fails, nothing that rank 0 needs has left this rank, so that
// rank 0 cannot publish (R-CMT-20).
Result<Bytes> MergeAtOwners(Communicator& comm, std::span<const BlobSummary> local_blobs,
                            const Limits& limits);

// The single steps of it, for callers without a communicator.
Bytes EncodeBlobIds(std::span<const BlobSummary> local_blobs);
// The ids of all blobs, ascending, from the messages of all ranks.
Result<std::vector<BlobId>> DecodeBlobIds(std::span<const Bytes> all);
// One message per rank.
std::vector<Bytes> EncodeForOwners(std::span<const BlobSummary> local_blobs,
                                   std::span<const BlobId> all_blobs, int size);
Bytes EncodeForCommitter(std::span<const BlobSummary> local_blobs, ByteSpan part);

// What rank 0 received from all ranks.
struct GatheredParts {
  std::vector<writer::CommittedBlob> blobs{};  // ascending by id
  std::vector<ByteSpan> parts{};               // of the messages
};
Result<GatheredParts> DecodeForCommitter(std::span<const Bytes> messages);
Result<Bytes> JoinGathered(const GatheredParts& gathered,
                           const metadata::IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_MERGE_AT_OWNERS_H_
