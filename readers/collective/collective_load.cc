// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/collective_load.h"

#include <functional>
#include <future>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/macros.h"
#include "lib/comm/agree.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/transfer/send_delivery.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {
namespace {

// One job at a time on a thread beside the caller's. Without threads Begin runs it. The destructor
// waits for the job, so that what the job uses is declared before.
class BackgroundJob {
 public:
  // Precondition: Wait was called for the job before.
  void Begin(std::function<Status()> job) {
    const auto task = std::make_shared<std::packaged_task<Status()>>(std::move(job));
    result_ = task->get_future();
    threads_.Submit([task] { (*task)(); });
  }
  // What the job returned. An exception of the job is thrown on.
  Status Wait() { return result_.get(); }

 private:
  std::future<Status> result_;
  pipeline::ThreadPool threads_{1};
};

constexpr std::uint64_t kRangeSizeMax = 8 * kMiB;
// malloc keeps the blocks of several messages of this size for reuse; larger ones would be mapped,
// and page by page faulted in, for every exchange. Many ranks get messages that are worth sending.
constexpr std::uint64_t kExchangeSizeMin = 2 * kMiB;
// Memory that ranks of a host share is mapped once. A batch of it should stay in the cache.
constexpr std::uint64_t kHostExchangeSizeMin = 4 * kMiB;
constexpr std::uint64_t kExchangeSizePerRank = 64 * kKiB;
// A window holds chunks of at most so many times the bytes that arrive: a bound on the requests, if
// each is for a small part of its chunk.
constexpr std::uint64_t kChunkBytesPerShare = 16;

}  // namespace

void CollectiveLoad::SortChunks(const ReadingOrder& order) {
  for (std::size_t r = 0; r < ranges_.shared.size(); ++r) {
    const transfer::PlanRange& range = ranges_.shared[r];
    for (std::size_t i = range.first_chunk; i < range.first_chunk + range.chunk_count; ++i) {
      shared_.push_back({order.PlaceOf(range.blob, plan_.chunks[i].offset), i, r});
    }
  }
  std::sort(shared_.begin(), shared_.end(), [](const SharedChunk& a, const SharedChunk& b) {
    return a.place.position < b.place.position;
  });
}

// Where the share of memory for what arrives ends: after one chunk at least.
std::uint64_t CollectiveLoad::EndOfShare(std::uint64_t end) {
  std::uint64_t received = 0;
  std::uint64_t chunk_bytes = 0;
  for (std::size_t i = next_; i < shared_.size(); ++i) {
    SharedChunk& shared = shared_[i];
    const transfer::PlanChunk& chunk = plan_.chunks[shared.chunk];
    if (shared.place.reader != comm_.rank()) {
      if (!shared.parts) {
        shared.parts =
            std::make_unique<transfer::ChunkParts>(transfer::ChunkParts::NeededBy(plan_, chunk));
      }
      received += shared.parts->size_bytes();
    }
    chunk_bytes += chunk.raw_size;
    const bool is_too_much = received > share() || chunk_bytes / kChunkBytesPerShare > share();
    if (i > next_ && is_too_much) return shared.place.position;
  }
  return end;
}

std::uint64_t CollectiveLoad::BatchSizeMax() const {
  const std::uint64_t of_ranks = kExchangeSizePerRank * static_cast<std::uint64_t>(comm_.size());
  const std::uint64_t size_min = host_memory_ ? kHostExchangeSizeMin : kExchangeSizeMin;
  return std::min(share(), std::max(size_min, of_ranks));
}

// If all ranks are on this host, an outbox holds all messages of a batch: those of one chunk, if it
// is larger than a batch. If not, it holds the part of a batch that goes to ranks of this host on
// average. No more than this rank sends at all.
std::uint64_t CollectiveLoad::OutboxSize(std::size_t host_ranks) const {
  std::uint64_t batch_size = std::max(BatchSizeMax(), std::min(share(), kHostExchangeSizeMin));
  std::uint64_t sent = 0;
  for (const SharedChunk& shared : shared_) {
    if (shared.place.reader != comm_.rank()) continue;
    const std::uint64_t chunk_size = plan_.chunks[shared.chunk].raw_size;
    batch_size = std::max(batch_size, chunk_size);
    if (sent < batch_size) sent += chunk_size * static_cast<std::uint64_t>(comm_.size() - 1);
  }
  const auto ranks = static_cast<std::uint64_t>(comm_.size());
  return std::min(host_ranks == ranks ? batch_size : batch_size / ranks * host_ranks, sent);
}

// The largest window in which no rank receives more than its share of memory, except for a single
// chunk that is larger. Every rank proposes where its own share ends; the least counts.
Result<std::shared_ptr<CollectiveLoad::Window>> CollectiveLoad::AgreeOnWindow(std::uint64_t begin,
                                                                              std::uint64_t end) {
  auto window = std::make_shared<Window>(Window{.expected = ExpectedChunks(comm_.size())});
  // The minimum over all ranks, as the complement of a maximum.
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> ends,
                             comm_.AllReduceMax({~EndOfShare(end)}));
  window->end = ~ends.front();
  SEALPOINT_CHECK(window->end > begin);
  SEALPOINT_RETURN_IF_ERROR(AskReaders(*window));
  window->batches = DivideIntoBatches(
      plan_, ranges_.shared, window->to_read,
      {.size_max_bytes = BatchSizeMax(),
       .range_size_max_bytes = std::min(kRangeSizeMax, checkpoint_.range_size_max_bytes()),
       .holds_chunks = !plan_.is_host_only()});
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> counts,
                             comm_.AllReduceMax({window->batches.size()}));
  window->batch_count = static_cast<std::size_t>(counts.front());
  return window;
}

Status CollectiveLoad::AskReaders(Window& window) {
  std::vector<SharedChunk*> needed;
  for (; next_ < shared_.size() && shared_[next_].place.position < window.end; ++next_) {
    needed.push_back(&shared_[next_]);
  }
  // In the order in which readers read and send them: what arrives is matched by position alone.
  std::sort(needed.begin(), needed.end(),
            [](const SharedChunk* a, const SharedChunk* b) { return a->chunk < b->chunk; });
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm_.size()));
  for (SharedChunk* shared : needed) {
    if (shared->place.reader == comm_.rank()) {
      window.to_read.push_back({.chunk = shared->chunk, .range = shared->range});
      continue;
    }
    const auto reader = static_cast<std::size_t>(shared->place.reader);
    EncodeRequest(plan_.chunks[shared->chunk], *shared->parts, outgoing[reader]);
    window.expected.Add(shared->place.reader, {shared->chunk, *std::move(shared->parts)});
    shared->parts.reset();
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                             comm_.AllToAll(std::move(outgoing)));
  for (int rank = 0; rank < comm_.size(); ++rank) {
    SEALPOINT_RETURN_IF_ERROR(
        TakeRequests(incoming[static_cast<std::size_t>(rank)], rank, plan_, window.to_read));
  }
  return {};
}

Result<ReadingOrder> CollectiveLoad::PutInOrder() {
  SEALPOINT_ASSIGN_OR_RETURN(const RequestedBytes requested, JoinRequests(comm_, plan_));
  all_bytes_requested_ = requested.size_bytes;
  ranges_ = DivideRanges(plan_, requested.shared);
  ReadingOrder order(requested.shared, comm_.size());
  if (options_.share_chunks) {
    SortChunks(order);
    return order;
  }
  order.SpreadReaders(ranges_.shared, comm_.rank());
  ranges_.alone.insert(ranges_.alone.end(), ranges_.shared.begin(), ranges_.shared.end());
  return ReadingOrder({}, comm_.size());
}

Status CollectiveLoad::OpenDelivery() {
  SEALPOINT_ASSIGN_OR_RETURN(delivery_, checkpoint_.OpenReceived(plan_));
  return {};
}

// After each exchange, also after an error: the batch that is read meanwhile may wait for the
// memory that is given back.
void CollectiveLoad::CompleteDelivery() {
  if (delivered_.ok()) delivered_ = delivery_->Complete();
  if (!delivered_.ok()) delivery_.reset();
}

// After an element that cannot be converted this rank takes no more data, but it stays in the
// sequence of exchanges until the next agreement, so that no other rank waits for it.
template <typename DeliverIt>
void CollectiveLoad::Deliver(const transfer::PlanChunk& chunk, const DeliverIt& deliver_it) {
  if (!delivered_.ok()) return;
  delivered_ = deliver_it();
  if (delivered_.ok()) return;
  delivered_ =
      Status(std::move(delivered_).AtPath(checkpoint_.BlobPath(chunk.blob)).AtOffset(chunk.offset));
}

Status CollectiveLoad::Exchange(SharedBatch& current, CollectiveLoadReport& report) {
  for (const BatchData::HeldChunk& held : current.data.held) {
    if (held.raw.empty()) continue;
    const transfer::PlanChunk& chunk = plan_.chunks[held.chunk];
    Deliver(chunk, [&] { return delivery_->Begin(chunk, held.raw); });
  }
  const auto take = [&](const ExpectedChunk& expected, ByteSpan packed) {
    const transfer::PlanChunk& chunk = plan_.chunks[expected.chunk];
    bytes_done_ += chunk.stored_size;
    Deliver(chunk, [&] {
      return transfer::DeliverParts(plan_, chunk, expected.parts, packed, unpacked_, *delivery_);
    });
  };
  const auto received = ExchangeChunks(comm_, current.data.outbox, current.window->expected, take);
  CompleteDelivery();
  SEALPOINT_RETURN_IF_ERROR(received.status());
  report.bytes_received += *received;
  ++report.exchange_count;
  const bool is_last = current.number + 1 == current.window->batch_count;
  return is_last ? current.window->expected.CheckAllArrived() : Status();
}

Status CollectiveLoad::Run(observe::PhaseRecorder& phases, CollectiveLoadReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingOrder order, PutInOrder());
  report.all_bytes_requested = all_bytes_requested_;
  phases.Begin(Phase::kRead, plan_.summary.bytes_read);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, ReadAlone(phases, report)));
  if (order.end() > 0) SEALPOINT_RETURN_IF_ERROR(ReadShared(order, phases, report));
  phases.End();
  return {};
}

// Puts `next` to the batch after that of `last`, in the next window if there is no more; false if
// that was the last of the order.
Result<bool> CollectiveLoad::AdvanceTo(SharedBatch& next, const SharedBatch& last,
                                       std::uint64_t& begin, std::uint64_t end) {
  next.window = last.window;
  next.number = last.number + 1;
  while (next.window == nullptr || next.number == next.window->batch_count) {
    next.window.reset();
    if (begin == end) return false;
    SEALPOINT_ASSIGN_OR_RETURN(next.window, AgreeOnWindow(begin, end));
    begin = next.window->end;
    next.number = 0;
  }
  return true;
}

// While a batch is verified and exchanged, the storage fetches the next ones of its window.
Status CollectiveLoad::Read(SharedBatch& current, BatchReader& reader) {
  Window& window = *current.window;
  if (window.ahead == nullptr) {
    for (const ReadingBatch& batch : window.batches) {
      window.ranges.insert(window.ranges.end(), batch.ranges.begin(), batch.ranges.end());
    }
    window.ahead = reader.Ahead(window.ranges);
  }
  return reader.Read(window.to_read, current.batch(), *window.ahead, current.data);
}

// Windows and their batches are the same on all ranks, also when this one has nothing to read in
// them.
Status CollectiveLoad::ReadShared(const ReadingOrder& order, observe::PhaseRecorder& phases,
                                  CollectiveLoadReport& report) {
  delivered_ = OpenDelivery();
  bytes_done_ = report.bytes_read;
  BatchReader reader(checkpoint_, plan_, threads_.count, comm_.size());
  const auto size_of = [&](std::size_t host_ranks) { return 2 * OutboxSize(host_ranks); };
  SEALPOINT_ASSIGN_OR_RETURN(host_memory_, HostMemory::Create(comm_, size_of));
  const std::uint64_t outbox_size = host_memory_ ? host_memory_->own().size() / 2 : 0;
  // Is exchanged while `next` is read. All ranks have read its messages when they agree.
  SharedBatch current{.data = {.outbox = Outbox(host_memory_.get(), 0, outbox_size)}};
  SharedBatch next{.data = {.outbox = Outbox(host_memory_.get(), outbox_size, outbox_size)}};
  BackgroundJob job;
  for (std::uint64_t begin = 0;;) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool reads, AdvanceTo(next, current, begin, order.end()));
    if (!reads && current.window == nullptr) return {};
    next.data.bytes_read = 0;
    job.Begin([&, reads] {  // also after a return from this block, which waits for it
      return reads ? Read(next, reader) : Status();
    });
    if (current.window != nullptr) SEALPOINT_RETURN_IF_ERROR(Exchange(current, report));
    const Status read = job.Wait();
    report.bytes_read += next.data.bytes_read;
    bytes_done_ += next.data.bytes_read;
    phases.Progress(bytes_done_);
    if (delivered_.ok()) delivered_ = read.ok() ? phases.failure() : read;
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, delivered_));
    std::swap(current, next);
  }
}

// Sending these bytes to other ranks would gain nothing.
Status CollectiveLoad::ReadAlone(observe::PhaseRecorder& phases,
                                 CollectiveLoadReport& report) const {
  if (ranges_.alone.empty()) return {};
  const auto read = checkpoint_.RunRanges(
      plan_, ranges_.alone, {.threads = options_.threads}, options_.memory_budget_bytes, phases,
      {.count = comm_.size(), .sharing_processors = threads_.sharing_ranks});
  SEALPOINT_RETURN_IF_ERROR(read.status());
  for (const transfer::PlanRange& range : ranges_.alone) report.bytes_read += range.size;
  return phases.failure();
}

Result<RankLoad> CollectiveLoad::DryRun() {
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingOrder order, PutInOrder());
  RankLoad load{.host = comm_.host(), .alone = plan_.summary};
  if (order.end() > 0) {  // the size of batches depends on it
    SEALPOINT_ASSIGN_OR_RETURN(host_memory_, HostMemory::Create(comm_, [](auto) { return 0; }));
  }
  std::set<std::uint32_t> blobs;
  const auto add = [&](const std::vector<transfer::PlanRange>& ranges) {
    for (const transfer::PlanRange& range : ranges) {
      blobs.insert(range.blob);
      load.bytes_read += range.size;
    }
    load.requests += ranges.size();
  };
  add(ranges_.alone);
  for (std::uint64_t begin = 0; begin < order.end();) {
    SEALPOINT_ASSIGN_OR_RETURN(const auto window, AgreeOnWindow(begin, order.end()));
    for (const ReadingBatch& batch : window->batches) add(batch.ranges);
    load.bytes_received += window->expected.size_bytes();
    begin = window->end;
  }
  load.files = blobs.size();
  return load;
}

}  // namespace sealpoint::internal::collective
