// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_TENSOR_MERGER_H_
#define SEALPOINT_LIB_METADATA_TENSOR_MERGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/layout/grid.h"
#include "lib/metadata/metadata_encoder.h"
#include "sealpoint/limits.h"
#include "sealpoint/region.h"

namespace sealpoint::internal {

// Where the shards of a tensor lie, in stored order: a grid, or a list where no grid describes it.
struct TensorGeometry {
  std::optional<Grid> grid{};
  std::vector<std::uint64_t> boxes{};  // offsets and extents of each shard
  std::vector<std::uint64_t> runs{};   // begin and end of each shard; empty where all are full
};

// What all blobs together say of one tensor.
struct MergedTensor {
  TensorFields fields{};
  std::shared_ptr<const TensorGeometry> geometry{};  // null where there are no shards
  std::span<const fb::ShardRef> shards{};            // in stored order
};

// Makes one tensor of what blobs say of it, and proves that their shards tile it exactly. Equal
// geometries, which the layers of a model have, are checked once and shared.
class TensorMerger {
 public:
  using BlobNamer = std::function<std::string(std::uint32_t blob)>;
  // `blob_name` is asked for messages only. Keeps a reference to the limits.
  TensorMerger(const Limits& limits, BlobNamer blob_name)
      : limits_(limits), blob_name_(std::move(blob_name)) {}

  // The first blob's word. The fields are borrowed until the next Begin.
  void Begin(const TensorFields& fields, std::uint32_t blob);
  // Another blob's word. Errors: InvalidArgument where it differs from the first.
  Status CheckAgreement(const TensorFields& fields, std::uint32_t blob) const;
  // A shard; `box` (offsets, extents) is borrowed until Finish. No run: the full one of the box.
  void AddShard(const std::uint64_t* box, std::optional<Run> run, fb::ShardRef ref);
  // Valid until the next Begin. Errors: InvalidArgument (a hole, an overlap), LimitExceeded.
  Result<MergedTensor> Finish();

  std::size_t shard_count() const { return parts_.size(); }

 private:
  // A shard of the tensor at hand.
  struct Part {
    const std::uint64_t* box = nullptr;  // 2 * ndim numbers
    Run run;
    bool is_full = true;
    fb::ShardRef ref;
  };

  void SortParts();
  void FillKey();
  void FillRegions();
  Result<std::shared_ptr<const TensorGeometry>> FindGeometry();
  Status CheckTiling(std::span<const Region> regions) const;

  const Limits& limits_;
  const BlobNamer blob_name_;
  NumbersMap<std::shared_ptr<const TensorGeometry>> geometries_;
  // Of the tensor at hand.
  TensorFields fields_;
  std::uint32_t first_blob_ = 0;
  std::vector<Part> parts_;
  Shape shape_;
  std::vector<Region> regions_;
  std::vector<std::uint64_t> key_;
  std::vector<fb::ShardRef> refs_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_TENSOR_MERGER_H_
