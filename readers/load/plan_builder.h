// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_PLAN_BUILDER_H_
#define SEALPOINT_READERS_LOAD_PLAN_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/container/blob_tables.h"
#include "lib/metadata/metadata.h"
#include "readers/load/chunk_selection.h"
#include "readers/load/destination.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// Collects requests and makes of them ranges, chunks and copies. Memory grows with the chunks
// touched. Borrows index and tables.
class PlanBuilder {
 public:
  // No range exceeds `range_size_max`, except for a range of a single chunk.
  PlanBuilder(const metadata::Metadata& index, container::BlobTables& tables,
              std::uint64_t range_size_max);

  // Reserves space for this many items, so that the lists do not grow step by step: each step
  // temporarily takes up to three times the previous memory.
  void Reserve(std::size_t item_count);
  // Preconditions: a valid region and destination of this tensor.
  Status AddTensor(const metadata::TensorView& tensor, const Destination& destination);
  // All chunks of an object, without copies.
  Status AddObject(const metadata::ObjectView& object);
  // Counts an item that needs no data.
  void AddNothing() { ++data_.summary.items; }

  // The last call.
  ReadPlanData Finish();

 private:
  struct StoredShard;

  void AddStream(const Destination& destination);
  void AddCopies(const StoredShard& stored, const SelectedChunk& selected,
                 const Destination& destination);
  bool ContinuesLast(const StoredShard& stored, std::uint64_t chunk) const;
  Status AddShard(const StoredShard& stored, std::vector<SelectedChunk> selected,
                  const Destination* destination);
  void AddChunk(const StoredShard& stored, const format::ChunkRecord& record,
                const SelectedChunk& selected, const Destination* destination);
  void MergeChunks();
  void CutRanges();
  void Summarize();

  const metadata::Metadata& index_;
  container::BlobTables& tables_;
  const std::uint64_t range_size_max_;
  ReadPlanData data_;
  std::optional<std::pair<std::uint32_t, std::uint64_t>> last_{};  // blob and record added last
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_PLAN_BUILDER_H_
