// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_LOAD_H_
#define SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_LOAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/phase_recorder.h"
#include "readers/collective/chunk_request.h"
#include "readers/collective/exchange_chunks.h"
#include "readers/collective/reading_order.h"
#include "readers/collective/requested_bytes.h"
#include "readers/load/checkpoint_impl.h"
#include "readers/load/copies_to_devices.h"
#include "sealpoint/collective_reader.h"

namespace sealpoint::internal {

// One collective load on one rank. Chunks that no other rank needs each reads alone, and they agree
// on the outcome. What several ranks need is read in rounds of bounded memory; in each the ranks
// agree on a window of the reading order, request the chunks that they need from the ranks that
// read them, read and verify what was requested from them, agree on the outcome, and exchange the
// bytes. Every rank takes every step, whatever its own outcome. Used once; collective. Errors:
// those of reading and converting, the same on all ranks; Cancelled (of a callback that threw);
// Comm, Timeout.
class CollectiveLoad {
 public:
  CollectiveLoad(Communicator& comm, const CheckpointImpl& checkpoint, const ReadPlanData& plan,
                 const CollectiveLoadOptions& options)
      : comm_(comm), checkpoint_(checkpoint), plan_(plan), options_(options) {}

  Status Run(PhaseRecorder& phases, CollectiveLoadReport& report);
  // What this rank would do in Run, without reading or exchanging payload.
  Result<RankLoad> DryRun();

 private:
  // A chunk of this rank's plan, and its position in the common reading order.
  struct OwnChunk {
    std::uint64_t position = 0;
    std::size_t chunk = 0;
    std::uint32_t blob = 0;
  };
  using Expected = std::vector<std::vector<ExpectedChunk>>;
  struct Round {
    std::uint64_t end = 0;      // position
    RequestedChunks requested;  // what this rank reads
    Expected expected;          // what it requested from each rank
  };

  // A third of the budget each for the bytes that are read, sent and received.
  std::uint64_t share() const {
    return std::max<std::uint64_t>(1, options_.memory_budget_bytes / 3);
  }

  Status ReadAlone(PhaseRecorder& phases, CollectiveLoadReport& report) const;
  Result<ReadingOrder> PutInOrder();
  void SortChunks(const ReadingOrder& order);
  Result<Round> AgreeOnRound(std::uint64_t begin, std::uint64_t end);
  Result<ReadingWindow> AgreeOnWindow(std::uint64_t begin, std::uint64_t end) const;
  Result<RequestedChunks> AskReaders(const ReadingWindow& window, Expected& expected);
  Status ReadRequested(const RequestedChunks& requested, std::vector<Bytes>& held) const;
  Status OpenDevices();
  Status TakeStaging();
  void FinishCopies();
  void Deliver(const ExpectedChunk& expected, ByteSpan packed);

  Communicator& comm_;
  const CheckpointImpl& checkpoint_;
  const ReadPlanData& plan_;
  const CollectiveLoadOptions& options_;
  std::uint64_t all_bytes_requested_ = 0;  // by all ranks together
  DividedRanges ranges_;
  std::vector<OwnChunk> own_;                // that other ranks need as well
  std::size_t next_ = 0;                     // index into own_
  std::vector<std::uint64_t> tensors_;       // number in the index, by PlanChunk::name
  Bytes unpacked_;                           // scratch: the last chunk of which only parts arrived
  Status delivered_;                         // the error of this rank in taking what arrived
  StagingBuffer staging_;                    // in use while chunks arrive; outlives the copies
  std::unique_ptr<CopiesToDevices> copies_;  // null if all destinations are in host memory
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_LOAD_H_
