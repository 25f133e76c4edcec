// SPDX-License-Identifier: Apache-2.0
#include "readers/load/run_plan.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "readers/load/copy_out.h"
#include "readers/load/ranges_ahead.h"

namespace sealpoint::internal {
namespace {

// True if the range was read in place and so needs no copies.
Result<bool> RunInPlace(const PlanRange& range, bool isolate, ChunkReader& reader) {
  if (range.in_place == nullptr || isolate) return false;
  return reader.ReadInPlace(range);
}

Status RunRange(const ReadPlanData& plan, const PlanRange& range, bool isolate,
                ChunkReader& reader) {
  SEALPOINT_ASSIGN_OR_RETURN(const bool is_done, RunInPlace(range, isolate, reader));
  if (is_done) return {};
  return reader.ReadRange(
      range, [&plan](const PlanChunk& chunk, ByteSpan raw) { return CopyOut(plan, chunk, raw); });
}

// Runs `read` for all ranges in parallel and reports the bytes read as progress.
using ReadOne = std::function<Status(std::size_t worker, const PlanRange& range)>;
Status ReadAll(const PlanSource& source, int threads, PhaseRecorder& phases, const ReadOne& read) {
  std::mutex mutex;  // guards `phases` and `bytes_done`
  std::uint64_t bytes_done = 0;
  RangesAhead ahead(source.files, source.ranges);
  return ParallelFor(threads, source.ranges.size(), [&](int worker, std::size_t i) -> Status {
    const PlanRange& range = source.ranges[i];
    ahead.Reach(i);
    SEALPOINT_RETURN_IF_ERROR(read(static_cast<std::size_t>(worker), range));
    const std::lock_guard lock(mutex);
    bytes_done += range.size;
    phases.Progress(bytes_done);
    return {};
  });
}

Status CheckDigests(const PlanSource& source) {
  for (const PlanStream& stream : source.plan.streams) {
    const Status offered = source.device->CheckDigests(stream.device);
    if (offered.ok()) continue;
    return std::move(MakeError(Code::kUnsupported,
                               "digests cannot be verified in memory of device ", stream.device,
                               ": ", offered.message()))
        .AtTensor(source.plan.names[stream.name]);
  }
  return {};
}

// Whether devices may read files by themselves. They must then be able to verify, since the host
// does not see those bytes.
bool ReadsDirectly(const PlanSource& source) {
  return source.device->CheckFiles().ok() && CheckDigests(source).ok();
}

// The queues of all threads are made, and ordered behind the caller's streams, before anything is
// read: a destination may be in use by work that is on its stream now. When this returns, also with
// an error, the readers are destroyed, and nothing that they queued runs any more.
Result<DeviceBytes> RunWithDevices(const PlanSource& source, const ReadOptions& options,
                                   std::uint64_t memory_budget_bytes, PhaseRecorder& phases) {
  // Isolated destinations get verified bytes only; a device writes before it verifies.
  const bool may_read_directly = options.gpudirect_storage && !options.isolate;
  const DeviceStaging staging =
      DeviceStaging::Divide(source.plan, options.threads, memory_budget_bytes,
                            options.verify_on_device || may_read_directly);
  // Declared before the readers, because they must outlive them.
  StagingBuffer memory;
  std::optional<DirectFiles> direct_files;
  std::vector<std::unique_ptr<DeviceReader>> readers;
  for (int i = 0; i < staging.threads; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(auto reader,
                               DeviceReader::Open(source, staging, options.verify_on_device));
    readers.push_back(std::move(reader));
  }
  if (options.verify_on_device) SEALPOINT_RETURN_IF_ERROR(CheckDigests(source));
  if (may_read_directly && ReadsDirectly(source)) {
    direct_files.emplace(source.files, *source.device);
    for (const auto& reader : readers) reader->UseDirectFiles(*direct_files);
  }
  source.pool.PinWith(source.device);
  // All at once: two reads that each hold a part of what they need would wait for each other.
  SEALPOINT_ASSIGN_OR_RETURN(memory,
                             source.pool.AcquireScratch(readers.size() * staging.thread_bytes()));
  for (std::size_t i = 0; i < readers.size(); ++i) {
    readers[i]->UseMemory(
        memory.bytes().subspan(i * staging.thread_bytes(), staging.thread_bytes()));
  }
  SEALPOINT_RETURN_IF_ERROR(
      ReadAll(source, staging.threads, phases, [&](std::size_t worker, const PlanRange& range) {
        DeviceReader& reader = *readers[worker];
        Result<bool> in_place = RunInPlace(range, options.isolate, reader.chunk_reader());
        if (!in_place) return std::move(in_place).error();
        return *in_place ? Status() : reader.ReadRange(range);
      }));
  DeviceBytes bytes;
  for (const auto& reader : readers) {
    SEALPOINT_RETURN_IF_ERROR(reader->Finish());
    bytes.verified += reader->bytes().verified;
    bytes.read_directly += reader->bytes().read_directly;
  }
  return bytes;
}

}  // namespace

int AffordableThreads(const ReadPlanData& plan, int threads, std::uint64_t memory_budget_bytes) {
  const std::uint64_t need = plan.range_memory_max + 2 * plan.decoded_size_max;
  if (need == 0) return threads;
  const std::uint64_t affordable = std::max<std::uint64_t>(1, memory_budget_bytes / need);
  return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), affordable));
}

RangeReader::RangeReader(const PlanSource& source, BlobFiles files, int threads,
                         std::uint64_t memory_budget_bytes)
    : files_(std::move(files)),
      source_{source.plan, {},          source.index, source.directory_path,
              files_,      source.pool, source.device} {
  const int affordable = AffordableThreads(source.plan, threads, memory_budget_bytes);
  for (int i = 0; i < affordable; ++i) readers_.emplace_back(source_);
}

Status RangeReader::Read(std::span<const PlanRange> ranges, const Take& take, RangesAhead& ahead,
                         std::size_t first) {
  return ParallelFor(static_cast<int>(readers_.size()), ranges.size(),
                     [&](int worker, std::size_t i) {
                       ahead.Reach(first + i);
                       return ReadOne(ranges[i], take, readers_[static_cast<std::size_t>(worker)]);
                     });
}

Status RangeReader::ReadOne(const PlanRange& range, const Take& take, ChunkReader& reader) {
  SEALPOINT_ASSIGN_OR_RETURN(const bool is_in_place, RunInPlace(range, false, reader));
  if (!is_in_place) {
    return reader.ReadRange(
        range, [&](const PlanChunk& chunk, ByteSpan raw) { return take(chunk, raw, false); });
  }
  const ByteSpan bytes(range.in_place, range.size);
  for (std::size_t i = 0; i < range.chunk_count; ++i) {
    const PlanChunk& chunk = source_.plan.chunks[range.first_chunk + i];
    const ByteSpan raw = bytes.subspan(chunk.offset - range.offset, chunk.raw_size);
    SEALPOINT_RETURN_IF_ERROR(take(chunk, raw, true));
  }
  return {};
}

Result<DeviceBytes> RunPlan(const PlanSource& source, const ReadOptions& options,
                            std::uint64_t memory_budget_bytes, PhaseRecorder& phases) {
  SEALPOINT_RETURN_IF_ERROR(CheckThreads("threads", options.threads));
  const ReadPlanData& plan = source.plan;
  if (!plan.streams.empty()) return RunWithDevices(source, options, memory_budget_bytes, phases);
  const int threads = AffordableThreads(plan, options.threads, memory_budget_bytes);
  std::deque<ChunkReader> readers;  // never moves its elements
  for (int i = 0; i < threads; ++i) readers.emplace_back(source);
  SEALPOINT_RETURN_IF_ERROR(
      ReadAll(source, threads, phases, [&](std::size_t worker, const PlanRange& range) {
        return RunRange(plan, range, options.isolate, readers[worker]);
      }));
  return DeviceBytes();
}

}  // namespace sealpoint::internal
