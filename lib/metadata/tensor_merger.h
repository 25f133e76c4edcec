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

namespace sealpoint::internal::metadata {

// The regions of the shards of a tensor, in stored order: a grid, else a list of boxes and runs.
struct TensorGeometry {
  std::optional<layout::Grid> grid{};
  std::vector<std::uint64_t> boxes{};  // offsets and extents of each shard
  std::vector<std::uint64_t> runs{};   // begin and end of each shard; empty if all are full
};

// One tensor, merged from the manifests of all blobs.
struct MergedTensor {
  TensorFields fields{};
  std::shared_ptr<const TensorGeometry> geometry{};  // null if there are no shards
  std::span<const fb::ShardRef> shards{};            // in stored order
};

// Merges the entries of one tensor in several manifests, and proves that its shards tile it
// exactly. Equal geometries, as the layers of a model have them, are checked once and shared.
class TensorMerger {
 public:
  using BlobNamer = std::function<std::string(std::uint32_t blob)>;
  // `blob_name` is called for error messages only. Keeps a reference to the limits.
  TensorMerger(const Limits& limits, BlobNamer blob_name)
      : limits_(limits), blob_name_(std::move(blob_name)) {}

  // Begins a tensor with its fields in the first blob, which are borrowed until the next Begin.
  void Begin(const TensorFields& fields, std::uint32_t blob);
  // Joins the fields in another blob: the fingerprint, if both have one, is that of both parts; all
  // others must agree. Errors: InvalidArgument if they do not.
  Status Join(const TensorFields& fields, std::uint32_t blob);
  // Adds a shard. `box` (offsets, then extents) is borrowed until Finish. Without a run the shard
  // is the whole box.
  void AddShard(const std::uint64_t* box, std::optional<Run> run, fb::ShardRef ref);
  // Ends the tensor. The result is valid until the next Begin. Errors: InvalidArgument (a hole, an
  // overlap), LimitExceeded.
  Result<MergedTensor> Finish();

  std::size_t shard_count() const { return parts_.size(); }

 private:
  // A shard of the current tensor.
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
  // The current tensor.
  TensorFields fields_;
  std::uint32_t first_blob_ = 0;
  std::vector<Part> parts_;
  Shape shape_;
  std::vector<Region> regions_;
  std::vector<std::uint64_t> key_;
  std::vector<fb::ShardRef> refs_;
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_TENSOR_MERGER_H_
