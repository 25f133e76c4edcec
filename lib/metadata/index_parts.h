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

// The index of many processes, without one that sees all manifests: each sends what its blobs say
// of a name to the process that owns this name; that one merges it into a part; the committer
// joins the parts. The index is byte for byte that of EncodeIndex over all manifests. What travels
// is lib/base/wire.h. A blob is known by its number: its position among all, sorted by id.

namespace sealpoint::internal {

// Appends one entry per tensor and object of this blob to what goes to the owner of its name.
void EncodeEntries(const Metadata& manifest, std::uint32_t blob,
                   const std::function<Bytes&(std::string_view name)>& outgoing);

// All that arrived at one owner, one message per sender, merged into a part: names ascend, exact
// tiling is proven. `blobs` are the ids of all blobs, ascending. Errors: as EncodeIndex; Comm
// (malformed).
Result<Bytes> MergeEntries(std::span<const Bytes> received, std::span<const BlobId> blobs,
                           const Limits& limits);

// The FlatBuffer of an index of all parts. `pins` are those of all blobs, ascending by id. Errors:
// InvalidArgument (the same blob twice), LimitExceeded, Comm (malformed). Whether the parts fit
// each other and the blobs is checked by Metadata::Decode.
Result<Bytes> JoinIndex(std::span<const ByteSpan> parts, std::span<const BlobPin> pins,
                        const IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_INDEX_PARTS_H_
