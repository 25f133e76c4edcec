// SPDX-License-Identifier: Apache-2.0
#include "readers/load/checkpoint_impl.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/container/resize.h"
#include "lib/format/constants.h"
#include "lib/observe/phase_recorder.h"
#include "lib/pipeline/load_threads.h"
#include "lib/transfer/host_delivery.h"
#include "readers/load/run_plan.h"
#include "readers/load/selection.h"
#include "readers/load/stored_chunks.h"

namespace sealpoint::internal::load {
namespace {

constexpr std::uint64_t kRangeMaxBytes = 8 * kMiB;
constexpr std::uint64_t kRangeMinBytes = 64 * kKiB;
// The kernel fetches ahead between smaller reads that follow each other.
constexpr std::uint64_t kDirectReadMinBytes = 16 * kMiB;
constexpr std::uint64_t kPoolBufferBytes = 4096;  // the pool is used for its scratch memory only
// A thread keeps decoded chunks of bases in this share of the budget.
constexpr std::uint64_t kBaseChunksShare = 4;

// A read holds four ranges of the budget at least, so that threads do not starve.
std::uint64_t RangeSizeMax(std::uint64_t memory_budget_bytes) {
  return std::clamp(memory_budget_bytes / 4, kRangeMinBytes, kRangeMaxBytes);
}

std::uint64_t SizeOf(std::span<const transfer::PlanRange> ranges) {
  std::uint64_t bytes = 0;
  for (const transfer::PlanRange& range : ranges) bytes += range.size;
  return bytes;
}

std::uint64_t PayloadBytes(const ReadPlanData& plan) {
  std::uint64_t bytes = 0;
  for (const transfer::PlanChunk& chunk : plan.chunks) bytes += chunk.stored_size;
  return bytes;
}

}  // namespace

Result<std::unique_ptr<CheckpointImpl>> CheckpointImpl::Make(
    const std::string& path, OpenOptions options, std::optional<container::GivenFiles> given) {
  if (options.memory_budget_bytes < kRangeMinBytes) {
    return InvalidArgument("memory_budget_bytes is ", options.memory_budget_bytes,
                           ", expected at least ", kRangeMinBytes);
  }
  if (!options.storage) options.storage = DefaultStorage();
  SEALPOINT_ASSIGN_OR_RETURN(
      container::CommittedFiles files,
      container::OpenCommitted(*options.storage, path, options.limits, options.check_files,
                               std::move(given), options.base_directories));
  return FromFiles(path, std::move(options), std::move(files));
}

Result<std::unique_ptr<CheckpointImpl>> CheckpointImpl::FromFiles(const std::string& path,
                                                                  OpenOptions options,
                                                                  container::CommittedFiles files) {
  SEALPOINT_ASSIGN_OR_RETURN(
      auto pool, device::StagingPool::Create(options.memory_budget_bytes, kPoolBufferBytes));
  std::unique_ptr<const CheckpointImpl> base;
  if (files.base) {
    const std::string base_path = files.base->directory->path();
    SEALPOINT_ASSIGN_OR_RETURN(base, FromFiles(base_path, options, std::move(*files.base)));
  }
  auto checkpoint =
      std::make_unique<CheckpointImpl>(path, std::move(options), std::move(files), std::move(pool));
  checkpoint->base_ = std::move(base);
  return checkpoint;
}

Status CheckpointImpl::ReadAsBase(const metadata::TensorView& of_delta, const Region& region,
                                  ChunkDecoder& decoder, MutableByteSpan to) const {
  const std::optional<std::size_t> number = index().FindTensor(of_delta.name());
  const auto lacks = [&](const auto&... reason) {
    return RuleError(Code::kCorrupt, "R-DLT-05", "base ", attempt().ToHex(), " in ", path_, " ",
                     reason...);
  };
  if (!number) return lacks("has no such tensor");
  const metadata::TensorView tensor = index().tensor(*number);
  if (tensor.dtype() != of_delta.dtype() || tensor.element_size() != of_delta.element_size() ||
      tensor.shape() != of_delta.shape()) {
    return lacks("has another tensor of this name: dtype ", DTypeName(tensor.dtype()), ", shape ",
                 ShapeToString(tensor.shape()));
  }
  PlanBuilder builder = NewPlan();
  SEALPOINT_RETURN_IF_ERROR(builder.AddTensor(
      tensor, Destination::Make(MutableMemoryView::Host(to), region, tensor.element_size())));
  const ReadPlanData plan = builder.Finish();
  RangeFiles files = FilesOfOneThread();
  const PlanSource source = SourceOf(plan, plan.ranges, files);
  ChunkReader reader(source, &decoder);
  transfer::HostDelivery delivery(plan, /*isolates=*/false);
  if (!decoder.base_chunks) {
    decoder.base_chunks =
        std::make_shared<BaseChunks>(options_.memory_budget_bytes / kBaseChunksShare);
    decoder.is_of_first_base = true;
  }
  if (decoder.is_of_first_base) decoder.base_chunks->Needs(to.size());
  // Where both are cut alike, no other chunk of the delta needs this one.
  if (plan.chunks.size() == 1 && plan.chunks.front().raw_size == to.size()) {
    return reader.Fetch(plan.ranges.front(), delivery);
  }
  return FetchBaseChunks(plan, reader, *decoder.base_chunks, delivery);
}

Status CheckpointImpl::FetchBaseChunks(const ReadPlanData& plan, ChunkReader& reader,
                                       BaseChunks& kept, transfer::Delivery& delivery) const {
  KeepingDelivery keeping(*this, kept, delivery);
  for (const transfer::PlanRange& range : plan.ranges) {
    for (std::size_t i = 0; i < range.chunk_count; ++i) {
      const transfer::PlanChunk& chunk = plan.chunks[range.first_chunk + i];
      if (const ByteSpan raw = kept.Find(*this, chunk); !raw.empty()) {
        SEALPOINT_RETURN_IF_ERROR(reader.At(chunk, delivery.Begin(chunk, raw)));
        continue;
      }
      SEALPOINT_RETURN_IF_ERROR(reader.At(chunk, kept.CountDecoded(chunk)));
      SEALPOINT_RETURN_IF_ERROR(reader.Fetch({.blob = range.blob,
                                              .offset = chunk.offset,
                                              .size = chunk.stored_size,
                                              .first_chunk = range.first_chunk + i,
                                              .chunk_count = 1},
                                             keeping));
    }
  }
  return {};
}

CheckpointImpl::CheckpointImpl(std::string path, OpenOptions options,
                               container::CommittedFiles files,
                               std::unique_ptr<device::StagingPool> pool)
    : path_(std::move(path)),
      options_(std::move(options)),
      files_(std::move(files)),
      pool_(std::move(pool)),
      tables_(*files_.directory, files_.index.metadata) {}

// Processes that load without each other may read the same bytes. One of them fetches these into
// the page cache for all.
RangeFiles CheckpointImpl::FilesToRead(std::span<const transfer::PlanRange> ranges,
                                       int rank_count) const {
  if (options_.direct_io) {
    return {tables_.files(), *options_.direct_io ? DirectReads::kAlways : DirectReads::kNever};
  }
  const bool has_other_readers = pipeline::ProcessesOfHost() > rank_count;
  const bool is_small = SizeOf(ranges) < kDirectReadMinBytes;
  return {tables_.files(),
          has_other_readers || is_small ? DirectReads::kNever : DirectReads::kIfCold};
}

// The kernel fetches ahead for one thread that reads in order.
RangeFiles CheckpointImpl::FilesOfOneThread() const {
  return {tables_.files(),
          options_.direct_io.value_or(false) ? DirectReads::kAlways : DirectReads::kNever};
}

PlanBuilder CheckpointImpl::NewPlan() const { return {index(), tables_, range_size_max_bytes()}; }

std::uint64_t CheckpointImpl::range_size_max_bytes() const {
  return RangeSizeMax(options_.memory_budget_bytes);
}

std::string CheckpointImpl::BlobPath(std::uint32_t blob) const {
  return JoinPath(path_, format::BlobName(index().blob(blob).id));
}

Result<ReadPlan> CheckpointImpl::Plan(const ReadRequest& request,
                                      const LoadContract& contract) const {
  SEALPOINT_ASSIGN_OR_RETURN(ResolvedRequest resolved, Resolve(request, contract));
  return PlanResolved(std::move(resolved));
}

Result<ResolvedRequest> CheckpointImpl::Resolve(const ReadRequest& request,
                                                const LoadContract& contract) const {
  Result<ResolvedRequest> resolved = ResolveRequest(index(), request, contract);
  if (!resolved.ok()) return std::move(resolved).error().AtPath(path_);
  return resolved;
}

Result<ReadPlan> CheckpointImpl::PlanResolved(ResolvedRequest resolved) const {
  PlanBuilder builder = NewPlan();
  builder.Reserve(resolved.items.size());
  for (; !resolved.items.empty(); resolved.items.pop_front()) {
    const ResolvedItem& item = resolved.items.front();
    if (!item.destination) {
      builder.AddNothing();
      continue;
    }
    SEALPOINT_RETURN_IF_ERROR(builder.AddTensor(index().tensor(item.tensor), *item.destination));
  }
  ReadPlanData data = builder.Finish();
  data.attempt = attempt();
  data.findings = std::move(resolved.findings);
  return InternalAccess::MakePlan(std::move(data));
}

Result<LoadReport> CheckpointImpl::Read(const ReadPlan& plan, const ReadOptions& options) const {
  const ReadPlanData& data = InternalAccess::DataOf(plan);
  if (data.attempt != attempt()) {
    return InvalidArgument("the plan belongs to attempt ", data.attempt.ToHex(), ", not of ",
                           attempt().ToHex());
  }
  SEALPOINT_RETURN_IF_ERROR(data.CheckHasMemory());
  if (options.holds_base && (options.isolate || !index().base())) {
    return InvalidArgument("holds_base is set, ", options.isolate
                                                      ? "and so is isolate"
                                                      : "but the checkpoint has no base");
  }
  observe::PhaseRecorder phases(options.on_progress);
  phases.Begin(Phase::kRead, data.summary.bytes_read);
  const Result<transfer::DeviceBytes> bytes =
      Run(data, options, options_.memory_budget_bytes, phases);
  if (!bytes) return bytes.error();
  return LoadReport{.plan = data.summary,
                    .findings = data.findings,
                    .bytes_verified_on_device = bytes->verified,
                    .bytes_by_gpudirect_storage = bytes->read_directly,
                    .phases = phases.report()};
}

Result<transfer::DeviceBytes> CheckpointImpl::Run(const ReadPlanData& plan,
                                                  const ReadOptions& options,
                                                  std::uint64_t memory_budget_bytes,
                                                  observe::PhaseRecorder& phases) const {
  Result<transfer::DeviceBytes> bytes =
      RunRanges(plan, plan.ranges, options, memory_budget_bytes, phases, LoadingRanks());
  phases.End();
  if (!bytes) return bytes;
  SEALPOINT_RETURN_IF_ERROR(phases.failure());
  return bytes;
}

Result<transfer::DeviceBytes> CheckpointImpl::RunRanges(const ReadPlanData& plan,
                                                        std::span<const transfer::PlanRange> ranges,
                                                        const ReadOptions& options,
                                                        std::uint64_t memory_budget_bytes,
                                                        observe::PhaseRecorder& phases,
                                                        const LoadingRanks& ranks_of_load) const {
  RangeFiles files = FilesToRead(ranges, ranks_of_load.count);
  return RunPlan(SourceOf(plan, ranges, files, options.holds_base), options,
                 ranks_of_load.sharing_processors, memory_budget_bytes, phases);
}

Result<std::unique_ptr<transfer::Delivery>> CheckpointImpl::OpenReceived(
    const ReadPlanData& plan) const {
  return internal::transfer::OpenReceived({plan, *pool_, devices_}, range_size_max_bytes());
}

std::unique_ptr<RangeReader> CheckpointImpl::OpenRanges(const ReadPlanData& plan, int threads,
                                                        int rank_count) const {
  RangeFiles files = FilesToRead(plan.ranges, rank_count);
  const PlanSource source = SourceOf(plan, {}, files);
  return std::make_unique<RangeReader>(source, files, threads, options_.memory_budget_bytes);
}

Result<Bytes> CheckpointImpl::ReadObject(std::string_view name) const {
  const std::optional<std::size_t> number = index().FindObject(name);
  if (!number) {
    return MakeError(Code::kNotFound, "the checkpoint has no such object").AtObject(name);
  }
  PlanBuilder builder = NewPlan();
  SEALPOINT_RETURN_IF_ERROR(builder.AddObject(index().object(*number)));
  return Collect(builder.Finish());
}

namespace {

// Appends chunks to the bytes of an object. They grow with what was decoded, and are given at once
// only what the files are known to hold: a few stored bytes may claim to be a large object.
class ObjectDelivery final : public transfer::Delivery {
 public:
  explicit ObjectDelivery(std::uint64_t size_max) : size_max_(size_max) {}

  Status Reserve(std::uint64_t size) {
    return container::ResizeBytes(object_, std::min(size, size_max_));
  }
  Result<transfer::FetchTarget> Prepare(const transfer::PlanRange&,
                                        transfer::RangeFetcher&) override {
    return transfer::FetchTarget();
  }
  Status Begin(const transfer::PlanChunk&, ByteSpan raw) override {
    if (object_.size() - size_ < raw.size()) {
      SEALPOINT_RETURN_IF_ERROR(Reserve(std::max(size_ + raw.size(), 2 * size_)));
    }
    std::copy(raw.begin(), raw.end(), object_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += raw.size();
    return {};
  }
  Bytes Take() && {
    SEALPOINT_CHECK(size_ == size_max_);
    return std::move(object_);
  }

 private:
  const std::uint64_t size_max_;
  Bytes object_;
  std::uint64_t size_ = 0;
};

}  // namespace

Result<Bytes> CheckpointImpl::Collect(const ReadPlanData& plan) const {
  ObjectDelivery object(plan.summary.bytes_requested);
  SEALPOINT_RETURN_IF_ERROR(object.Reserve(PayloadBytes(plan)));
  RangeFiles files = FilesOfOneThread();
  const PlanSource source = SourceOf(plan, plan.ranges, files);
  ChunkReader reader(source);
  for (const transfer::PlanRange& range : plan.ranges) {
    SEALPOINT_RETURN_IF_ERROR(reader.Fetch(range, object));
  }
  return std::move(object).Take();
}

std::vector<std::pair<std::string, std::uint32_t>> CheckpointImpl::mesh() const {
  return index().mesh();
}

std::vector<std::pair<std::string, std::string>> CheckpointImpl::provenance() const {
  return index().provenance();
}

// Attributes were verified with the index.
Attributes CheckpointImpl::attributes() const {
  return Attributes::Decode(index().attributes()).value();
}

std::vector<BlobInfo> CheckpointImpl::blobs() const {
  std::vector<BlobInfo> all;
  all.reserve(index().blob_count());
  for (std::size_t i = 0; i < index().blob_count(); ++i) {
    const metadata::BlobPin pin = index().blob(i);
    all.push_back(
        {.id = pin.id, .file_size_bytes = pin.file_size, .chunk_count = pin.record_count});
  }
  return all;
}

TensorInfo CheckpointImpl::tensor(std::size_t i) const {
  SEALPOINT_CHECK(i < index().tensor_count());
  const metadata::TensorView view = index().tensor(i);
  return {.name = std::string(view.name()),
          .dtype = view.dtype(),
          .element_size = view.element_size(),
          .shape = view.shape(),
          .chunk_size_bytes = view.chunk_size(),
          .raw_bytes = view.element_count() * view.element_size(),
          .shard_count = view.shard_count(),
          .placement = view.placement(),
          .fingerprint = view.fingerprint(),
          .attributes = Attributes::Decode(view.attributes()).value()};
}

std::string_view CheckpointImpl::tensor_name(std::size_t i) const {
  SEALPOINT_CHECK(i < index().tensor_count());
  return index().tensor(i).name();
}

std::optional<TensorInfo> CheckpointImpl::FindTensor(std::string_view name) const {
  const std::optional<std::size_t> found = index().FindTensor(name);
  if (!found) return std::nullopt;
  return tensor(*found);
}

std::vector<TensorInfo> CheckpointImpl::TensorsWithPrefix(std::string_view prefix) const {
  const TensorRange range = internal::load::TensorsWithPrefix(index(), prefix);
  std::vector<TensorInfo> found;
  found.reserve(range.end - range.begin);
  for (std::size_t i = range.begin; i < range.end; ++i) found.push_back(tensor(i));
  return found;
}

Result<std::vector<std::size_t>> CheckpointImpl::MatchTensorNumbers(
    const std::vector<std::string>& patterns) const {
  return internal::load::MatchTensors(index(), patterns);
}

Result<std::vector<TensorInfo>> CheckpointImpl::MatchTensors(
    const std::vector<std::string>& patterns) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> numbers, MatchTensorNumbers(patterns));
  std::vector<TensorInfo> found;
  found.reserve(numbers.size());
  for (const std::size_t i : numbers) found.push_back(tensor(i));
  return found;
}

ObjectInfo CheckpointImpl::object(std::size_t i) const {
  SEALPOINT_CHECK(i < index().object_count());
  const metadata::ObjectView view = index().object(i);
  return {.name = std::string(view.name()),
          .media_type = std::string(view.media_type()),
          .size_bytes = view.size()};
}

std::optional<ObjectInfo> CheckpointImpl::FindObject(std::string_view name) const {
  const std::optional<std::size_t> found = index().FindObject(name);
  if (!found) return std::nullopt;
  return object(*found);
}

Result<std::vector<ObjectInfo>> CheckpointImpl::MatchObjects(
    const std::vector<std::string>& patterns) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> numbers,
                             internal::load::MatchObjects(index(), patterns));
  std::vector<ObjectInfo> found;
  found.reserve(numbers.size());
  for (const std::size_t i : numbers) found.push_back(object(i));
  return found;
}

Result<StoredChunks> CheckpointImpl::TensorChunks(std::string_view tensor) const {
  const std::optional<std::size_t> found = index().FindTensor(tensor);
  if (!found) {
    return MakeError(Code::kNotFound, "the checkpoint has no such tensor").AtTensor(tensor);
  }
  Result<StoredChunks> chunks = CountChunks(tables_, index().tensor(*found));
  if (!chunks.ok()) return std::move(chunks).error().AtTensor(tensor);
  return chunks;
}

Result<std::vector<ShardInfo>> CheckpointImpl::Shards(std::string_view tensor) const {
  std::vector<ShardInfo> shards;
  SEALPOINT_RETURN_IF_ERROR(
      ForEachShard(tensor, [&](const ShardInfo& shard) { shards.push_back(shard); }));
  return shards;
}

Status CheckpointImpl::ForEachShard(std::string_view tensor,
                                    const std::function<void(const ShardInfo&)>& visit) const {
  const std::optional<std::size_t> found = index().FindTensor(tensor);
  if (!found) {
    return MakeError(Code::kNotFound, "the checkpoint has no such tensor").AtTensor(tensor);
  }
  const metadata::TensorView view = index().tensor(*found);
  view.ForEachShard([&](std::size_t shard, Region region) {
    visit({.region = std::move(region), .blob = index().blob(view.shard_ref(shard).blob).id});
  });
  return {};
}

}  // namespace sealpoint::internal::load
