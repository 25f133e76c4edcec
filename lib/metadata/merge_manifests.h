// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_
#define SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_

#include <span>

#include "lib/metadata/index_attributes.h"
#include "lib/metadata/metadata.h"

namespace sealpoint::internal::metadata {

// What one blob contributes to an index.
struct BlobContribution {
  BlobPin pin{};
  const Metadata* manifest = nullptr;  // borrowed
};

// The index of one process that has all manifests; index_parts.h is for many that have not
// (spec/decisions/0022). Merges manifests into the FlatBuffer of an index: tensors by name over all
// blobs, as a grid if the shards form one, else as a box list. Checks exact tiling. Blobs are
// sorted by id, so that the bytes do not depend on the order given. Tensors with an extent of 0
// have no shards. A tensor's placement is that of the first blob that has one. Errors
// (InvalidArgument, with the tensor and the blobs concerned): a name with different dtype, shape or
// chunk size in two blobs, a hole, an overlap, an object in two blobs, the same blob twice;
// LimitExceeded. Does not check that the records fit the blobs, which Metadata::Decode does.
Result<Bytes> EncodeIndex(std::span<const BlobContribution> blobs,
                          const IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_
