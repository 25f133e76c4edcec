// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_
#define SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_

#include <span>

#include "lib/metadata/index_attributes.h"
#include "lib/metadata/metadata.h"

namespace sealpoint::internal::metadata {

// Contribution of one blob to an index.
struct BlobContribution {
  BlobPin pin{};
  const Metadata* manifest = nullptr;  // borrowed
};

// Merges the manifests of one process that has all of them into the FlatBuffer of an index; see
// index_parts.h for distributed manifests (spec/decisions/0022). Tensors are merged by name over
// all blobs, as a grid if the shards form one, otherwise as a box list. Checks exact tiling. Blobs
// are sorted by id, so that the bytes do not depend on the input order. Tensors with an extent of 0
// have no shards. A tensor's placement is that of the first blob that has one. Errors
// (InvalidArgument, with the tensor and the blobs concerned): a name with different dtype, shape or
// chunk size in two blobs, a hole, an overlap, an object in two blobs, a duplicate blob;
// LimitExceeded. Does not check that the records fit the blobs; Metadata::Decode does.
Result<Bytes> EncodeIndex(std::span<const BlobContribution> blobs,
                          const IndexAttributes& attributes, const Limits& limits);

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_MERGE_MANIFESTS_H_
