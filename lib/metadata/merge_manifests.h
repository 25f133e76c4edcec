// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_
#define SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_

#include <span>

#include "lib/metadata/index_attributes.h"
#include "lib/metadata/metadata.h"

namespace sealpoint::internal {

// What one blob contributes to an index.
struct BlobContribution {
  BlobPin pin{};
  const Metadata* manifest = nullptr;  // borrowed
};

// Merges manifests into the FlatBuffer of an index: tensors by name over all blobs, a grid where
// the shards form one, else a box list; exact tiling is checked. Blobs are sorted by id, so that
// the bytes do not depend on the order given. Tensors that are declared with an extent of 0 carry
// no shards. A tensor's placement is that of the first blob that has one. Errors (InvalidArgument,
// with tensor and the blobs concerned): a name with different dtype, shape or chunk size in two
// blobs, a hole, an overlap, an object in two blobs, the same blob twice; LimitExceeded. Whether
// the records fit the blobs is checked by Metadata::Decode.
Result<Bytes> EncodeIndex(std::span<const BlobContribution> blobs,
                          const IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_
