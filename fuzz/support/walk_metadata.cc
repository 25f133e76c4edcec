// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/walk_metadata.h"

#include <algorithm>

#include "fuzz/support/target.h"

namespace sealpoint::fuzz {
namespace {

namespace metadata = internal::metadata;

using metadata::Metadata;
using metadata::MetadataKind;
using metadata::ShardRef;

void RequireReference(const Metadata& metadata, const ShardRef& ref) {
  if (metadata.kind() == MetadataKind::kManifest) {
    Require(ref.blob == 0, "a manifest refers to another blob");
    return;
  }
  Require(ref.blob < metadata.blob_count(), "a shard in no blob");
  Require(ref.first_record < metadata.blob(ref.blob).record_count, "a shard without record");
}

void WalkTensor(const Metadata& metadata, const metadata::TensorView& tensor) {
  const Shape shape = tensor.shape();
  const std::vector<Region> regions = tensor.regions();
  Require(regions.size() == tensor.shard_count(), "regions and shards differ in number");
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    Require(CheckRegion(shape, regions[i]).ok(), "a region outside its tensor");
    elements += regions[i].element_count();
    RequireReference(metadata, tensor.shard_ref(i));
    if (i >= 16) continue;  // a query is linear in the shards
    const auto touching = tensor.ShardsTouching(regions[i].box);
    Require(std::ranges::count(touching, std::pair(i, regions[i])) == 1,
            "a shard that does not touch its own box");
  }
  if (const auto fingerprint = tensor.fingerprint()) {
    Require(std::ranges::max(fingerprint->values()) < Fingerprint::kModulus,
            "a fingerprint that is not reduced");
  }
  if (metadata.kind() == MetadataKind::kIndex) {
    Require(elements == tensor.element_count(), "the shards do not tile their tensor");
  }
}

}  // namespace

void WalkMetadata(const Metadata& metadata) {
  for (std::size_t i = 0; i < metadata.tensor_count(); ++i) {
    const metadata::TensorView tensor = metadata.tensor(i);
    Require(metadata.FindTensor(tensor.name()) == i, "a tensor is not found by its name");
    (void)tensor.placement();
    WalkTensor(metadata, tensor);
  }
  for (std::size_t i = 0; i < metadata.object_count(); ++i) {
    const metadata::ObjectView object = metadata.object(i);
    Require(metadata.FindObject(object.name()) == i, "an object is not found by its name");
    Require(!object.media_type().empty(), "an object without media type");
    if (object.size() != 0) RequireReference(metadata, object.shard_ref());
  }
  (void)metadata.mesh();
  (void)metadata.provenance();
}

}  // namespace sealpoint::fuzz
