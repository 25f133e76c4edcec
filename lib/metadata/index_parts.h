// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_INDEX_PARTS_H_
#define SEALPOINT_LIB_METADATA_INDEX_PARTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "lib/metadata/index_attributes.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

// Builds the index of many processes without collecting all manifests in one process. Each process
// sends the entries of its blobs to the owner of their name, each owner merges its messages into a
// part, and the committer joins the parts. The index equals that of EncodeIndex over all manifests,
// byte for byte. Messages are encoded with lib/base/wire.h. They refer to a blob by its number,
// which is its position among all blobs sorted by id.

namespace sealpoint::internal::metadata {

// Appends one entry per tensor and object of this blob to the message for the owner of its name.
void EncodeEntries(const Metadata& manifest, std::uint32_t blob,
                   const std::function<Bytes&(std::string_view name)>& outgoing);

// Merges all messages that one owner received, one per sender, into a part: names ascend, and exact
// tiling is proven. The owner must have the entries of all blobs, because a hole cannot be told
// from a shard of a blob that is missing here. `blobs` are the ids of all blobs, ascending. Errors:
// as EncodeIndex; Comm (malformed).
Result<Bytes> MergeEntries(std::span<const Bytes> received, std::span<const BlobId> blobs,
                           const Limits& limits);

// Joins all parts into the FlatBuffer of an index. `pins` are those of all blobs, ascending by id.
// Errors: InvalidArgument (the same blob twice), LimitExceeded, Comm (malformed). Does not check
// that the parts fit each other and the blobs: the committer runs Metadata::Decode over the result
// before it publishes.
Result<Bytes> JoinIndex(std::span<const ByteSpan> parts, std::span<const BlobPin> pins,
                        const IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_INDEX_PARTS_H_
