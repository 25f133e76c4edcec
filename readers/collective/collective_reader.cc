// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/collective_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/phase_recorder.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "readers/collective/chunk_wish.h"
#include "readers/collective/contract_of_all.h"
#include "readers/collective/pass_on.h"
#include "readers/collective/reading_order.h"
#include "readers/load/checkpoint_impl.h"
#include "readers/load/run_plan.h"

namespace sealpoint {
namespace internal {
namespace {

constexpr std::uint64_t kPieceBytes = 32 * kMiB;
constexpr std::uint64_t kRangeSizeMax = 8 * kMiB;

void EncodeRanges(std::span<const BlobBytes> ranges, WireWriter& out) {
  for (const BlobBytes& range : ranges) {
    out.Put(std::uint64_t{range.blob});
    out.Put(range.begin);
    out.Put(range.end);
  }
}

Status DecodeRanges(ByteSpan bytes, std::vector<BlobBytes>& ranges) {
  WireReader in(bytes);
  while (!in.at_end()) {
    BlobBytes range;
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(range.begin, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(range.end, in.Number());
    range.blob = static_cast<std::uint32_t>(blob);
    ranges.push_back(range);
  }
  return Status();
}

Result<std::vector<BlobBytes>> DecodeUnion(const std::vector<Bytes>& messages) {
  std::vector<BlobBytes> ranges;
  for (const Bytes& message : messages) {
    SEALPOINT_RETURN_IF_ERROR(DecodeRanges(message, ranges));
  }
  return UnionOf(std::move(ranges));
}

// What all ranks want, joined per blob by rank (blob mod size) and then known to all: no rank ever
// holds more than the joined ranges.
Result<std::vector<BlobBytes>> UnionOfAll(Communicator& comm, const ReadPlanData& plan) {
  std::vector<BlobBytes> mine;
  for (const PlanRange& range : plan.ranges) {
    mine.push_back({range.blob, range.offset, range.offset + range.size});
  }
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm.size()));
  for (const BlobBytes& range : UnionOf(std::move(mine))) {
    WireWriter out(outgoing[range.blob % outgoing.size()]);
    EncodeRanges({&range, 1}, out);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(outgoing));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<BlobBytes> joined, DecodeUnion(incoming));
  Bytes bytes;
  WireWriter out(bytes);
  EncodeRanges(joined, out);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  return DecodeUnion(all);
}

// One collective load on one rank, round after round.
class Rounds {
 public:
  Rounds(Communicator& comm, const CheckpointImpl& checkpoint, const ReadPlanData& plan,
         const CollectiveLoadOptions& options)
      : comm_(comm), checkpoint_(checkpoint), plan_(plan), options_(options) {}

  Status Run(PhaseRecorder& phases, CollectiveLoadReport& report);

 private:
  // A chunk of this rank's plan in the order of all.
  struct OwnChunk {
    std::uint64_t position = 0;
    std::size_t chunk = 0;
    std::uint32_t blob = 0;
  };
  using Expected = std::vector<std::vector<ExpectedChunk>>;

  // A third each for what is read, sent and received.
  std::uint64_t share() const {
    return std::max<std::uint64_t>(1, options_.memory_budget_bytes / 3);
  }

  void SortChunks(const ReadingOrder& order);
  Result<ReadingWindow> AgreeOnWindow(std::uint64_t begin, std::uint64_t end) const;
  Result<RequestedChunks> AskReaders(const ReadingWindow& window, Expected& expected);
  Status ReadRequested(const RequestedChunks& requested, std::vector<Bytes>& held) const;

  Communicator& comm_;
  const CheckpointImpl& checkpoint_;
  const ReadPlanData& plan_;
  const CollectiveLoadOptions& options_;
  std::vector<OwnChunk> own_;
  std::size_t next_ = 0;                // of own_
  std::vector<std::uint64_t> tensors_;  // in the index, by PlanChunk::name
};

void Rounds::SortChunks(const ReadingOrder& order) {
  for (const PlanRange& range : plan_.ranges) {
    for (std::size_t i = range.first_chunk; i < range.first_chunk + range.chunk_count; ++i) {
      own_.push_back({order.PositionOf(range.blob, plan_.chunks[i].offset), i, range.blob});
    }
  }
  std::sort(own_.begin(), own_.end(),
            [](const OwnChunk& a, const OwnChunk& b) { return a.position < b.position; });
  for (const std::string& name : plan_.names) {
    tensors_.push_back(checkpoint_.index().FindTensor(name).value_or(0));
  }
}

// As far as no rank gets or reads more than its share, but for one chunk.
Result<ReadingWindow> Rounds::AgreeOnWindow(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t mine = end;
  std::uint64_t received = 0;
  for (std::size_t i = next_; i < own_.size(); ++i) {
    const std::uint64_t raw_size = plan_.chunks[own_[i].chunk].raw_size;
    if (i > next_ && received + raw_size > share()) {
      mine = own_[i].position;
      break;
    }
    received += raw_size;
  }
  const auto ranks = static_cast<std::uint64_t>(comm_.size());
  if (share() < (end - begin) / ranks) mine = std::min(mine, begin + ranks * share());
  // The least of all.
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> most, comm_.AllReduceMax({~mine}));
  return ReadingWindow{.begin = begin, .end = ~most.front()};
}

Result<RequestedChunks> Rounds::AskReaders(const ReadingWindow& window, Expected& expected) {
  std::vector<OwnChunk> wanted;
  for (; next_ < own_.size() && own_[next_].position < window.end; ++next_) {
    wanted.push_back(own_[next_]);
  }
  // As the reader will send them.
  std::sort(wanted.begin(), wanted.end(),
            [](const OwnChunk& a, const OwnChunk& b) { return a.chunk < b.chunk; });
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm_.size()));
  for (const OwnChunk& one : wanted) {
    const auto reader = static_cast<std::size_t>(window.ReaderOf(one.position, comm_.size()));
    const PlanChunk& chunk = plan_.chunks[one.chunk];
    expected[reader].push_back({.chunk = one.chunk, .raw_size = chunk.raw_size});
    EncodeWish({.blob = one.blob, .tensor = tensors_[chunk.name], .chunk = chunk},
               outgoing[reader]);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm_.AllToAll(outgoing));
  std::vector<std::vector<ChunkWish>> wishes;
  for (const Bytes& message : incoming) {
    SEALPOINT_ASSIGN_OR_RETURN(auto one, DecodeWishes(message, checkpoint_.index()));
    wishes.push_back(std::move(one));
  }
  return MergeWishes(wishes, checkpoint_.index(), kRangeSizeMax);
}

Status Rounds::ReadRequested(const RequestedChunks& requested, std::vector<Bytes>& held) const {
  const PlanChunk* const first = requested.plan.chunks.data();
  return checkpoint_.ReadChunks(
      requested.plan, options_.threads, [&](const PlanChunk& chunk, ByteSpan raw) {
        held[static_cast<std::size_t>(&chunk - first)].assign(raw.begin(), raw.end());
        return Status();
      });
}

Status Rounds::Run(PhaseRecorder& phases, CollectiveLoadReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(std::vector<BlobBytes> wanted, UnionOfAll(comm_, plan_));
  const ReadingOrder order(wanted, kPieceBytes);
  report.all_bytes_wanted = order.size_bytes();
  SortChunks(order);
  phases.Begin(Phase::kRead, plan_.summary.bytes_read);
  std::uint64_t bytes_done = 0;
  for (std::uint64_t begin = 0; begin < order.size_bytes();) {
    SEALPOINT_ASSIGN_OR_RETURN(const ReadingWindow window,
                               AgreeOnWindow(begin, order.size_bytes()));
    Expected expected(static_cast<std::size_t>(comm_.size()));
    SEALPOINT_ASSIGN_OR_RETURN(const RequestedChunks requested, AskReaders(window, expected));
    std::vector<Bytes> held(requested.plan.chunks.size());
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, ReadRequested(requested, held)));
    report.bytes_read += requested.plan.summary.bytes_read;
    SEALPOINT_ASSIGN_OR_RETURN(const PassedOn passed,
                               PassOn(comm_, requested, std::move(held), expected, share(),
                                      [&](std::size_t chunk, ByteSpan raw) {
                                        CopyOut(plan_, plan_.chunks[chunk], raw);
                                        bytes_done += plan_.chunks[chunk].stored_size;
                                      }));
    phases.Progress(bytes_done);
    report.bytes_received += passed.bytes_received;
    report.rounds += passed.exchanges;
    begin = window.end;
  }
  phases.End();
  return Status();
}

// This rank's half of the contract, and its plan.
Result<ReadPlan> PlanMine(const CheckpointImpl& checkpoint, const ReadRequest& request,
                          LoadContract contract, ResolvedRequest& resolved) {
  contract.unexpected = OnMismatch::kAllow;
  contract.coverage = OnMismatch::kAllow;
  SEALPOINT_ASSIGN_OR_RETURN(resolved, ResolveRequest(checkpoint.index(), request, contract));
  return checkpoint.PlanResolved(resolved);
}

Result<std::uint64_t> SumOverRanks(Communicator& comm, std::uint64_t mine) {
  Bytes bytes;
  WireWriter(bytes).Put(mine);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  std::uint64_t sum = 0;
  for (const Bytes& one : all) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t number, WireReader(one).Number());
    sum += number;
  }
  return sum;
}

class CollectiveReaderImpl final : public CollectiveReader {
 public:
  CollectiveReaderImpl(Communicator& comm, std::unique_ptr<CheckpointImpl> checkpoint)
      : comm_(comm), checkpoint_(std::move(checkpoint)) {}

  const Checkpoint& checkpoint() const override { return *checkpoint_; }

  Result<CollectiveLoadReport> Load(const ReadRequest& request, const LoadContract& contract,
                                    const CollectiveLoadOptions& options) override {
    PhaseRecorder phases(options.on_phase);
    phases.Begin(Phase::kPlanRead);
    ResolvedRequest resolved;
    Result<ReadPlan> plan = options.threads < 1
                                ? InvalidArgument("a load with ", options.threads, " threads")
                                : PlanMine(*checkpoint_, request, contract, resolved);
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, plan.status()));
    CollectiveLoadReport report{.plan = plan->Summary()};
    SEALPOINT_ASSIGN_OR_RETURN(report.findings,
                               JudgeTogether(comm_, checkpoint_->index(), resolved, contract));
    Rounds rounds(comm_, *checkpoint_, plan->data(), options);
    SEALPOINT_RETURN_IF_ERROR(rounds.Run(phases, report));
    SEALPOINT_ASSIGN_OR_RETURN(report.all_bytes_read, SumOverRanks(comm_, report.bytes_read));
    report.phases = phases.report();
    return report;
  }

 private:
  Communicator& comm_;
  const std::unique_ptr<CheckpointImpl> checkpoint_;
};

// Marker and index as one message.
Bytes Join(const Checkpoint& checkpoint) {
  Bytes bytes(checkpoint.marker_bytes().begin(), checkpoint.marker_bytes().end());
  bytes.insert(bytes.end(), checkpoint.index_bytes().begin(), checkpoint.index_bytes().end());
  return bytes;
}

Result<std::unique_ptr<CheckpointImpl>> OpenOnce(Communicator& comm, const std::string& path,
                                                 const OpenOptions& options) {
  constexpr int kRoot = 0;
  std::unique_ptr<CheckpointImpl> checkpoint;
  Result<Bytes> files = Bytes();
  if (comm.rank() == kRoot) {
    auto opened = CheckpointImpl::Make(path, options, {});
    if (opened.ok()) {
      checkpoint = std::move(opened).value();
      files = Join(*checkpoint);
    } else {
      files = opened.error();
    }
  }
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes all, BroadcastResult(comm, kRoot, std::move(files)));
  Status status;
  if (comm.rank() != kRoot) {
    const auto marker_end =
        all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), kMarkerSize));
    OpenOptions mine = options;
    mine.check_files = false;
    auto opened = CheckpointImpl::Make(path, std::move(mine),
                                       GivenFiles{.marker = Bytes(all.begin(), marker_end),
                                                  .index = Bytes(marker_end, all.end())});
    status = opened.status();
    if (opened.ok()) checkpoint = std::move(opened).value();
  }
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm, status));
  return checkpoint;
}

}  // namespace
}  // namespace internal

Result<std::unique_ptr<CollectiveReader>> CollectiveReader::Open(Communicator& comm,
                                                                 const std::string& path,
                                                                 const OpenOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(auto checkpoint, internal::OpenOnce(comm, path, options));
  std::unique_ptr<CollectiveReader> reader =
      std::make_unique<internal::CollectiveReaderImpl>(comm, std::move(checkpoint));
  return reader;
}

}  // namespace sealpoint
