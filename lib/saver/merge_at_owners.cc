// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/merge_at_owners.h"

#include <algorithm>
#include <utility>

#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/metadata/index_parts.h"
#include "lib/saver/owner_rank.h"
#include "lib/saver/preflight.h"

namespace sealpoint::internal::saver {
namespace {

void EncodeBlob(const writer::CommittedBlob& blob, WireWriter& out) {
  const metadata::BlobPin& pin = blob.pin;
  out.Put(pin.id);
  out.Put(pin.file_size);
  out.Put(pin.table_offset);
  out.Put(std::uint64_t{pin.record_count});
  out.Put(std::uint64_t{pin.shard_count});
  out.Put(pin.group_list_digest);
  out.Put(pin.trailer_digest);
  out.Put(blob.attempt);
  out.Put(blob.features.compat);
}

Result<writer::CommittedBlob> DecodeBlob(WireReader& in) {
  writer::CommittedBlob blob;
  metadata::BlobPin& pin = blob.pin;
  SEALPOINT_ASSIGN_OR_RETURN(pin.id, in.Id<BlobId>());
  SEALPOINT_ASSIGN_OR_RETURN(pin.file_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(pin.table_offset, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t record_count, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t shard_count, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(pin.group_list_digest, in.Id<Digest>());
  SEALPOINT_ASSIGN_OR_RETURN(pin.trailer_digest, in.Id<Digest>());
  SEALPOINT_ASSIGN_OR_RETURN(blob.attempt, in.Id<AttemptId>());
  SEALPOINT_ASSIGN_OR_RETURN(blob.features.compat, in.Number());
  pin.record_count = static_cast<std::uint32_t>(record_count);
  pin.shard_count = static_cast<std::uint32_t>(shard_count);
  return blob;
}

}  // namespace

Bytes EncodeBlobIds(std::span<const BlobSummary> local_blobs) {
  Bytes bytes;
  WireWriter out(bytes);
  for (const BlobSummary& summary : local_blobs) out.Put(summary.blob());
  return bytes;
}

Result<std::vector<BlobId>> DecodeBlobIds(std::span<const Bytes> all) {
  std::vector<BlobId> ids;
  for (const Bytes& of_rank : all) {
    WireReader in(of_rank);
    while (!in.at_end()) {
      SEALPOINT_ASSIGN_OR_RETURN(const BlobId id, in.Id<BlobId>());
      ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<Bytes> EncodeForOwners(std::span<const BlobSummary> local_blobs,
                                   std::span<const BlobId> all_blobs, int size) {
  std::vector<Bytes> outgoing(static_cast<std::size_t>(size));
  for (const BlobSummary& summary : local_blobs) {
    const auto place = std::lower_bound(all_blobs.begin(), all_blobs.end(), summary.blob());
    metadata::EncodeEntries(
        InternalAccess::DecodedOf(summary)->manifest,
        static_cast<std::uint32_t>(place - all_blobs.begin()),
        [&](std::string_view name) -> Bytes& { return outgoing[OwnerRank(name, size)]; });
  }
  return outgoing;
}

Bytes EncodeForCommitter(std::span<const BlobSummary> local_blobs, ByteSpan part) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(std::uint64_t{local_blobs.size()});
  for (const BlobSummary& summary : local_blobs) {
    const writer::DecodedSummary& decoded = *InternalAccess::DecodedOf(summary);
    EncodeBlob({.pin = decoded.pin,
                .attempt = decoded.header.attempt,
                .features = decoded.header.features},
               out);
  }
  out.Put(AsText(part));
  return bytes;
}

Result<GatheredParts> DecodeForCommitter(std::span<const Bytes> messages) {
  GatheredParts gathered;
  for (const Bytes& message : messages) {
    WireReader in(message);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, in.Number());
    for (std::uint64_t i = 0; i < count; ++i) {
      SEALPOINT_ASSIGN_OR_RETURN(writer::CommittedBlob blob, DecodeBlob(in));
      gathered.blobs.push_back(blob);
    }
    SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan part, in.Span());
    gathered.parts.push_back(part);
  }
  std::sort(gathered.blobs.begin(), gathered.blobs.end(),
            [](const writer::CommittedBlob& a, const writer::CommittedBlob& b) {
              return a.pin.id < b.pin.id;
            });
  return gathered;
}

Result<Bytes> JoinGathered(const GatheredParts& gathered,
                           const metadata::IndexAttributes& attributes, const Limits& limits) {
  std::vector<metadata::BlobPin> pins;
  pins.reserve(gathered.blobs.size());
  for (const writer::CommittedBlob& blob : gathered.blobs) pins.push_back(blob.pin);
  return metadata::JoinIndex(gathered.parts, pins, attributes, limits);
}

Result<Bytes> MergeAtOwners(Communicator& comm, const Status& local_status, bool is_missing,
                            std::span<const BlobSummary> local_blobs, const Limits& limits) {
  const comm::Gathered ids = comm::AgreeAndGather(comm, local_status, EncodeBlobIds(local_blobs));
  SEALPOINT_RETURN_IF_ERROR(OutcomeOf(ids.agreement, local_status, is_missing));
  const auto blobs = DecodeBlobIds(ids.all);
  // One message at a time is in memory, or two: each is as large as the index.
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm.size()));
  if (blobs.ok()) outgoing = EncodeForOwners(local_blobs, *blobs, comm.size());
  auto received = comm.AllToAll(std::move(outgoing));
  SEALPOINT_RETURN_IF_ERROR(received.status());
  Result<Bytes> part =
      blobs.ok() ? metadata::MergeEntries(*received, *blobs, limits) : Result<Bytes>(blobs.error());
  received->clear();
  if (part.ok()) part = EncodeForCommitter(local_blobs, *part);
  return comm::EncodeResult(comm, std::move(part));
}

}  // namespace sealpoint::internal::saver
