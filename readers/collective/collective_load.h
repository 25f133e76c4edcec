// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_LOAD_H_
#define SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_LOAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/observe/phase_recorder.h"
#include "lib/transfer/delivery.h"
#include "readers/collective/batch_reader.h"
#include "readers/collective/chunk_request.h"
#include "readers/collective/exchange_chunks.h"
#include "readers/collective/reading_batch.h"
#include "readers/collective/reading_order.h"
#include "readers/collective/requested_bytes.h"
#include "readers/load/checkpoint_impl.h"
#include "sealpoint/collective_reader.h"

namespace sealpoint::internal::collective {

// One collective load on one rank. A chunk that only one rank needs is read by that rank alone; the
// ranks then agree on the outcome. A chunk that several ranks need is read by one of them and sent
// to the others. For this the ranks agree on a window of the reading order, request the chunks that
// they need from their readers, and read and exchange them in batches of bounded memory. While a
// batch is exchanged and copied, the next is read and verified. They agree on the outcome of each
// batch. Every rank takes every step, regardless of its own outcome. Used once; collective. Errors:
// those of reading and converting, the same on all ranks; Cancelled (a callback threw); Comm,
// Timeout.
class CollectiveLoad {
 public:
  struct Threads {
    int count = 1;          // that CollectiveLoadOptions::threads gives
    int sharing_ranks = 1;  // ranks that share the processors
  };

  CollectiveLoad(Communicator& comm, const load::CheckpointImpl& checkpoint,
                 const load::ReadPlanData& plan, const CollectiveLoadOptions& options,
                 const Threads& threads)
      : comm_(comm), checkpoint_(checkpoint), plan_(plan), options_(options), threads_(threads) {}

  Status Run(observe::PhaseRecorder& phases, CollectiveLoadReport& report);
  // Computes the cost of Run on this rank without reading or exchanging payload.
  Result<RankLoad> DryRun();

 private:
  // A chunk of this rank's plan that other ranks need as well.
  struct SharedChunk {
    ReadingOrder::Place place;
    std::size_t chunk = 0;
    std::size_t range = 0;                          // in ranges_.shared
    std::unique_ptr<transfer::ChunkParts> parts{};  // that this rank needs; null until computed
  };
  // A window of the reading order.
  struct Window {
    std::uint64_t end = 0;               // position
    std::vector<ChunkToRead> to_read{};  // by this rank
    std::vector<ReadingBatch> batches{};
    std::size_t batch_count = 0;                // of the rank that has the largest number
    ExpectedChunks expected;                    // from other ranks
    std::vector<transfer::PlanRange> ranges{};  // of all batches
    std::unique_ptr<load::RangesAhead> ahead{};
  };
  // A batch that is read, and then exchanged.
  struct SharedBatch {
    BatchData data;
    std::shared_ptr<Window> window{};  // null: none
    std::size_t number = 0;            // in the window

    ReadingBatch batch() const {
      return number < window->batches.size() ? window->batches[number] : ReadingBatch();
    }
  };

  // A quarter of the budget each for data being read, sent and received; the last quarter for the
  // excess of one batch beyond its share.
  std::uint64_t share() const {
    return std::max<std::uint64_t>(1, options_.memory_budget_bytes / 4);
  }

  Status ReadAlone(observe::PhaseRecorder& phases, CollectiveLoadReport& report) const;
  Status ReadShared(const ReadingOrder& order, observe::PhaseRecorder& phases,
                    CollectiveLoadReport& report);
  Result<ReadingOrder> PutInOrder();
  void SortChunks(const ReadingOrder& order);
  Result<std::shared_ptr<Window>> AgreeOnWindow(std::uint64_t begin, std::uint64_t end);
  std::uint64_t EndOfShare(std::uint64_t end);
  std::uint64_t BatchSizeMax() const;
  std::uint64_t OutboxSize(std::size_t host_ranks) const;
  Result<bool> AdvanceTo(SharedBatch& next, const SharedBatch& last, std::uint64_t& begin,
                         std::uint64_t end);
  Status AskReaders(Window& window);
  static Status Read(SharedBatch& current, BatchReader& reader);
  Status Exchange(SharedBatch& current, CollectiveLoadReport& report);
  Status OpenDelivery();
  void CompleteDelivery();
  template <typename DeliverIt>
  void Deliver(const transfer::PlanChunk& chunk, const DeliverIt& deliver_it);

  Communicator& comm_;
  const load::CheckpointImpl& checkpoint_;
  const load::ReadPlanData& plan_;
  const CollectiveLoadOptions& options_;
  const Threads threads_;
  std::uint64_t all_bytes_requested_ = 0;  // by all ranks together
  DividedRanges ranges_;
  std::vector<SharedChunk> shared_;          // by position
  std::size_t next_ = 0;                     // index into shared_
  std::uint64_t bytes_done_ = 0;             // stored bytes of chunks that are at their destination
  Bytes unpacked_;                           // scratch: the last chunk that arrived only in parts
  Status delivered_;                         // this rank's error in delivering received data
  std::unique_ptr<HostMemory> host_memory_;  // null: the communicator sends the messages
  std::unique_ptr<transfer::Delivery> delivery_;  // for received data; null after an error
};

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_LOAD_H_
