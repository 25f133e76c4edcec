// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_CHECKPOINT_IMPL_H_
#define SEALPOINT_READERS_LOAD_CHECKPOINT_IMPL_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/container/blob_files.h"
#include "lib/container/blob_tables.h"
#include "lib/container/open_checkpoint.h"
#include "lib/device/cuda_runtime.h"
#include "lib/device/staging_pool.h"
#include "lib/metadata/metadata.h"
#include "lib/transfer/delivery_set.h"
#include "readers/load/chunk_reader.h"
#include "readers/load/contract.h"
#include "readers/load/plan_builder.h"
#include "readers/load/run_plan.h"
#include "sealpoint/checkpoint.h"

namespace sealpoint::internal::load {

class CheckpointImpl final : public Checkpoint {
 public:
  static Result<std::unique_ptr<CheckpointImpl>> Make(const std::string& path, OpenOptions options,
                                                      std::optional<container::GivenFiles> given);
  // The files of a checkpoint and its bases, which were opened.
  static Result<std::unique_ptr<CheckpointImpl>> FromFiles(const std::string& path,
                                                           OpenOptions options,
                                                           container::CommittedFiles files);
  CheckpointImpl(std::string path, OpenOptions options, container::CommittedFiles files,
                 std::unique_ptr<device::StagingPool> pool);

  ByteSpan marker_bytes() const override { return files_.marker.bytes; }
  ByteSpan index_bytes() const override { return *files_.index.bytes; }
  const std::string& path() const override { return path_; }
  AttemptId attempt() const override { return files_.marker.marker.attempt; }
  AttemptId parent() const override { return files_.marker.marker.parent; }
  std::uint64_t sequence() const override { return files_.marker.marker.sequence; }
  std::uint64_t step() const override { return files_.marker.marker.step; }
  std::uint64_t created_unix_ns() const override { return index().created_unix_ns(); }
  std::uint64_t raw_bytes() const override { return index().raw_bytes(); }
  std::vector<std::pair<std::string, std::uint32_t>> mesh() const override;
  std::vector<std::pair<std::string, std::string>> provenance() const override;
  Attributes attributes() const override;
  std::vector<BlobInfo> blobs() const override;
  std::optional<BaseRef> base() const override { return index().base(); }
  BaseRef as_base() const override { return container::PinOf(files_); }

  std::size_t tensor_count() const override { return index().tensor_count(); }
  TensorInfo tensor(std::size_t i) const override;
  std::string_view tensor_name(std::size_t i) const override;
  std::optional<TensorInfo> FindTensor(std::string_view name) const override;
  std::vector<TensorInfo> TensorsWithPrefix(std::string_view prefix) const override;
  Result<std::vector<TensorInfo>> MatchTensors(
      const std::vector<std::string>& patterns) const override;
  Result<std::vector<std::size_t>> MatchTensorNumbers(
      const std::vector<std::string>& patterns) const override;
  std::size_t object_count() const override { return index().object_count(); }
  ObjectInfo object(std::size_t i) const override;
  std::optional<ObjectInfo> FindObject(std::string_view name) const override;
  Result<std::vector<ObjectInfo>> MatchObjects(
      const std::vector<std::string>& patterns) const override;
  Result<StoredChunks> TensorChunks(std::string_view tensor) const override;
  Result<std::vector<ShardInfo>> Shards(std::string_view tensor) const override;
  Status ForEachShard(std::string_view tensor,
                      const std::function<void(const ShardInfo&)>& visit) const override;

  Result<ReadPlan> Plan(const ReadRequest& request, const LoadContract& contract) const override;
  Result<LoadReport> Read(const ReadPlan& plan, const ReadOptions& options) const override;
  Result<Bytes> ReadObject(std::string_view name) const override;

  // Sets the devices; tests use it to install a fake before the first use.
  void UseDevices(std::shared_ptr<device::DeviceRuntime> devices) { devices_ = std::move(devices); }
  const std::shared_ptr<device::DeviceRuntime>& devices() const { return devices_; }

  // The records of chunks of this index (BlobTables::Load), for digest comparisons.
  Result<std::vector<format::ChunkRecord>> ChunkRecords(const container::ShardChunks& chunks,
                                                        std::uint64_t& bytes_read) const {
    return tables_.Load(chunks, bytes_read);
  }

  // Reads the base bytes of elements of a delta's tensor, on this thread. Errors: Corrupt
  // (R-DLT-05: this checkpoint has no such tensor); those of a read, with the place in this
  // checkpoint.
  Status ReadAsBase(const metadata::TensorView& of_delta, const Region& region,
                    ChunkDecoder& decoder, MutableByteSpan to) const;
  const CheckpointImpl* opened_base() const { return base_.get(); }

  // The blobs, read through the page cache, for mapping.
  container::BlobFiles BufferedBlobs() const { return tables_.files().InMode(IoMode::kBuffered); }

  // For the collective reader.
  const metadata::Metadata& index() const { return files_.index.metadata; }
  std::uint64_t range_size_max_bytes() const;
  std::string BlobPath(std::uint32_t blob) const;
  // See contract.h; errors name the checkpoint.
  Result<ResolvedRequest> Resolve(const ReadRequest& request, const LoadContract& contract) const;
  Result<ReadPlan> PlanResolved(ResolvedRequest resolved) const;
  // Runs a plan (run_plan.h), and ends the phase of `phases` that is under way.
  Result<transfer::DeviceBytes> Run(const ReadPlanData& plan, const ReadOptions& options,
                                    std::uint64_t memory_budget_bytes,
                                    observe::PhaseRecorder& phases) const;
  // Reads some of the plan's ranges, or parts of them, within the current phase.
  // PlanRange::has_other_readers says which ranges several of the ranks read.
  Result<transfer::DeviceBytes> RunRanges(const ReadPlanData& plan,
                                          std::span<const transfer::PlanRange> ranges,
                                          const ReadOptions& options,
                                          std::uint64_t memory_budget_bytes,
                                          observe::PhaseRecorder& phases,
                                          const LoadingRanks& ranks_of_load) const;
  // See delivery_set.h. Both borrow the plan and the checkpoint.
  Result<std::unique_ptr<transfer::Delivery>> OpenReceived(const ReadPlanData& plan) const;
  std::unique_ptr<RangeReader> OpenRanges(const ReadPlanData& plan, int threads,
                                          int rank_count) const;

 private:
  PlanSource SourceOf(const ReadPlanData& plan, std::span<const transfer::PlanRange> ranges,
                      RangeFiles& files, bool holds_base = false) const {
    return {plan, ranges, index(), path_, files, *pool_, devices_, base_.get(), holds_base};
  }
  RangeFiles FilesToRead(std::span<const transfer::PlanRange> ranges, int rank_count) const;
  RangeFiles FilesOfOneThread() const;
  PlanBuilder NewPlan() const;
  Result<Bytes> Collect(const ReadPlanData& plan) const;
  // Base bytes that lie in several chunks, or in part of one.
  Status FetchBaseChunks(const ReadPlanData& plan, ChunkReader& reader, BaseChunks& kept,
                         transfer::Delivery& delivery) const;

  const std::string path_;
  const OpenOptions options_;
  const container::CommittedFiles files_;
  const std::unique_ptr<device::StagingPool> pool_;
  std::unique_ptr<const CheckpointImpl> base_;  // of a delta
  std::shared_ptr<device::DeviceRuntime> devices_ = device::CudaRuntime();
  // Caches, which lock for themselves.
  mutable container::BlobTables tables_;
};

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_CHECKPOINT_IMPL_H_
