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

// Merges the manifests of all ranks into one index at rank 0 without data there that grows with
// ranks times tensors (spec/decisions/0011). Every rank sends its blobs' entries for a name to the
// rank that owns this name; the owner merges them; rank 0 receives only merged parts.

namespace sealpoint::internal::saver {

// Collective. Agrees on `local_status`; `is_missing`: see OutcomeOf. Returns the message of this
// rank for rank 0 (comm::DecodeResult): the pins of its own blobs, and the merged tensors and
// objects with names that it owns; or an error of MergeEntries. Errors: the agreed one, the same on
// all ranks; Comm, Timeout. If it fails, this rank has sent nothing that rank 0 needs, so rank 0
// cannot publish (R-CMT-20).
Result<Bytes> MergeAtOwners(Communicator& comm, const Status& local_status, bool is_missing,
                            std::span<const BlobSummary> local_blobs, const Limits& limits);

// The single steps of it, for callers without a communicator.
Bytes EncodeBlobIds(std::span<const BlobSummary> local_blobs);
// The ids of all blobs, ascending, from the messages of all ranks.
Result<std::vector<BlobId>> DecodeBlobIds(std::span<const Bytes> all);
// One message per rank.
std::vector<Bytes> EncodeForOwners(std::span<const BlobSummary> local_blobs,
                                   std::span<const BlobId> all_blobs, int size);
Bytes EncodeForCommitter(std::span<const BlobSummary> local_blobs, ByteSpan part);

// Data that rank 0 received from all ranks.
struct GatheredParts {
  std::vector<writer::CommittedBlob> blobs{};  // ascending by id
  std::vector<ByteSpan> parts{};               // of the messages
};
Result<GatheredParts> DecodeForCommitter(std::span<const Bytes> messages);
Result<Bytes> JoinGathered(const GatheredParts& gathered,
                           const metadata::IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_MERGE_AT_OWNERS_H_
