// SPDX-License-Identifier: Apache-2.0
#include "readers/load/delivery.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "readers/load/copy_out.h"
#include "readers/load/device_reader.h"
#include "readers/load/direct_read.h"

namespace sealpoint::internal {
namespace {

// Copies on the thread that reads.
class HostDelivery final : public Delivery {
 public:
  HostDelivery(const PlanSource& source, const ReadOptions& options,
               std::uint64_t memory_budget_bytes)
      : Delivery(options.isolate), plan_(source.plan) {
    const int threads = AffordableThreads(plan_, options.threads, memory_budget_bytes);
    for (int i = 0; i < threads; ++i) readers_.emplace_back(source);
  }

  int thread_count() const override { return static_cast<int>(readers_.size()); }
  Result<DeviceBytes> Finish() override { return DeviceBytes(); }

 private:
  ChunkReader& ReaderOf(std::size_t thread) override { return readers_[thread]; }
  Status DeliverCopies(std::size_t thread, const PlanRange& range) override {
    return readers_[thread].ReadRange(
        range, [this](const PlanChunk& chunk, ByteSpan raw) { return CopyOut(plan_, chunk, raw); });
  }

  const ReadPlanData& plan_;
  std::deque<ChunkReader> readers_;  // never moves its elements
};

// Queues copies to devices behind the reads. The queues of all threads are made, and ordered behind
// the caller's streams, before anything is read: a destination may be in use by work that is on its
// stream now.
class QueuedDelivery final : public Delivery {
 public:
  static Result<std::unique_ptr<Delivery>> Open(const PlanSource& source,
                                                const ReadOptions& options,
                                                std::uint64_t memory_budget_bytes);

  int thread_count() const override { return static_cast<int>(readers_.size()); }
  Result<DeviceBytes> Finish() override;

 private:
  explicit QueuedDelivery(const ReadOptions& options) : Delivery(options.isolate) {}
  ChunkReader& ReaderOf(std::size_t thread) override { return readers_[thread]->chunk_reader(); }
  Status DeliverCopies(std::size_t thread, const PlanRange& range) override {
    return readers_[thread]->ReadRange(range);
  }

  StagingBuffer memory_;
  std::optional<DirectFiles> direct_files_;
  std::vector<std::unique_ptr<DeviceReader>> readers_;  // destroyed first: they use the others
};

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

Result<std::unique_ptr<Delivery>> QueuedDelivery::Open(const PlanSource& source,
                                                       const ReadOptions& options,
                                                       std::uint64_t memory_budget_bytes) {
  // Isolated destinations get verified bytes only; a device writes before it verifies.
  const bool may_read_directly = options.gpudirect_storage && !options.isolate;
  const DeviceStaging staging =
      DeviceStaging::Divide(source.plan, options.threads, memory_budget_bytes,
                            options.verify_on_device || may_read_directly);
  std::unique_ptr<QueuedDelivery> delivery(new QueuedDelivery(options));
  auto& readers = delivery->readers_;
  for (int i = 0; i < staging.threads; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(auto reader,
                               DeviceReader::Open(source, staging, options.verify_on_device));
    readers.push_back(std::move(reader));
  }
  if (options.verify_on_device) SEALPOINT_RETURN_IF_ERROR(CheckDigests(source));
  if (may_read_directly && ReadsDirectly(source)) {
    delivery->direct_files_.emplace(source.files, *source.device);
    for (const auto& reader : readers) reader->UseDirectFiles(*delivery->direct_files_);
  }
  source.pool.PinWith(source.device);
  // All at once: two reads that each hold a part of what they need would wait for each other.
  SEALPOINT_ASSIGN_OR_RETURN(delivery->memory_,
                             source.pool.AcquireScratch(readers.size() * staging.thread_bytes()));
  const MutableByteSpan memory = delivery->memory_.bytes();
  for (std::size_t i = 0; i < readers.size(); ++i) {
    readers[i]->UseMemory(memory.subspan(i * staging.thread_bytes(), staging.thread_bytes()));
  }
  return std::unique_ptr<Delivery>(std::move(delivery));
}

Result<DeviceBytes> QueuedDelivery::Finish() {
  DeviceBytes bytes;
  for (const auto& reader : readers_) {
    SEALPOINT_RETURN_IF_ERROR(reader->Finish());
    bytes.verified += reader->bytes().verified;
    bytes.read_directly += reader->bytes().read_directly;
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Delivery>> Delivery::Open(const PlanSource& source,
                                                 const ReadOptions& options,
                                                 std::uint64_t memory_budget_bytes) {
  if (!source.plan.streams.empty()) {
    return QueuedDelivery::Open(source, options, memory_budget_bytes);
  }
  return std::unique_ptr<Delivery>(new HostDelivery(source, options, memory_budget_bytes));
}

Status Delivery::Deliver(std::size_t thread, const PlanRange& range) {
  if (range.in_place != nullptr && !isolates_) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_done, ReaderOf(thread).ReadInPlace(range));
    if (is_done) return {};
  }
  return DeliverCopies(thread, range);
}

int AffordableThreads(const ReadPlanData& plan, int threads, std::uint64_t memory_budget_bytes) {
  const std::uint64_t need = plan.range_memory_max + 2 * plan.decoded_size_max;
  if (need == 0) return threads;
  const std::uint64_t affordable = std::max<std::uint64_t>(1, memory_budget_bytes / need);
  return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), affordable));
}

}  // namespace sealpoint::internal
