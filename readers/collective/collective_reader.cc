// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/collective_reader.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/phase_recorder.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/digest/hasher.h"
#include "readers/collective/collective_contract.h"
#include "readers/collective/collective_load.h"
#include "readers/collective/load_plan.h"
#include "readers/load/checkpoint_impl.h"

namespace sealpoint {
namespace internal {
namespace {

// This rank's half of the contract, and its plan.
Result<ReadPlan> PlanMine(const CheckpointImpl& checkpoint, const ReadRequest& request,
                          LoadContract contract, ResolvedRequest& resolved) {
  contract.unexpected = OnMismatch::kAllow;
  contract.coverage = OnMismatch::kAllow;
  SEALPOINT_ASSIGN_OR_RETURN(resolved, checkpoint.Resolve(request, contract));
  return checkpoint.PlanResolved(resolved);
}

Result<std::uint64_t> SumOverRanks(Communicator& comm, std::uint64_t local_number) {
  Bytes bytes;
  WireWriter(bytes).Put(local_number);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  std::uint64_t sum = 0;
  for (const Bytes& one : all) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t number, WireReader(one).Number());
    sum += number;
  }
  return sum;
}

// InvalidArgument on all ranks unless all bring the same numbers: the greatest and the least of
// each are the same then.
Status AgreeOnSame(Communicator& comm, const std::vector<std::uint64_t>& local_numbers,
                   std::string_view what) {
  std::vector<std::uint64_t> numbers = local_numbers;
  for (const std::uint64_t number : local_numbers) numbers.push_back(~number);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> maxima, comm.AllReduceMax(numbers));
  for (std::size_t i = 0; i < local_numbers.size(); ++i) {
    if (maxima[i] != ~maxima[local_numbers.size() + i]) {
      return InvalidArgument("the ranks pass different ", what);
    }
  }
  return {};
}

// A rank must not get another object than it asked for, nor wait for one that nobody reads.
Status AgreeOnName(Communicator& comm, std::string_view name) {
  const Digest digest = ComputeDigest(AsBytes(name));
  const ByteSpan bytes(digest.bytes);
  return AgreeOnSame(comm, {LoadLe<std::uint64_t>(bytes, 0), LoadLe<std::uint64_t>(bytes, 8)},
                     "names of an object");
}

// What ranks check together, they check by one contract.
Status AgreeOnContract(Communicator& comm, const LoadContract& contract) {
  const auto number = [](OnMismatch policy) { return static_cast<std::uint64_t>(policy); };
  return AgreeOnSame(comm,
                     {number(contract.missing), number(contract.unexpected), number(contract.dtype),
                      number(contract.shape), number(contract.coverage)},
                     "contracts");
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
    CollectiveLoadReport report;
    SEALPOINT_ASSIGN_OR_RETURN(const ReadPlan plan,
                               PlanTogether(request, contract, options, report.findings));
    report.plan = plan.Summary();
    CollectiveLoad load(comm_, *checkpoint_, plan.data(), options);
    SEALPOINT_RETURN_IF_ERROR(load.Run(phases, report));
    SEALPOINT_ASSIGN_OR_RETURN(report.all_bytes_read, SumOverRanks(comm_, report.bytes_read));
    report.phases = phases.report();
    return report;
  }

  Result<CollectiveLoadPlan> Plan(const ReadRequest& request, const LoadContract& contract,
                                  const CollectiveLoadOptions& options) override {
    std::vector<LoadFinding> findings;
    SEALPOINT_ASSIGN_OR_RETURN(const ReadPlan local_plan,
                               PlanTogether(request, contract, options, findings));
    CollectiveLoad load(comm_, *checkpoint_, local_plan.data(), options);
    SEALPOINT_ASSIGN_OR_RETURN(const RankLoad rank_load, load.DryRun());
    SEALPOINT_ASSIGN_OR_RETURN(CollectiveLoadPlan plan, GatherLoads(comm_, rank_load));
    plan.findings = std::move(findings);
    return plan;
  }

  Result<Bytes> ReadObject(std::string_view name) override {
    SEALPOINT_RETURN_IF_ERROR(AgreeOnName(comm_, name));
    const std::optional<std::size_t> number = checkpoint_->index().FindObject(name);
    // Many objects are dealt to all ranks. What is not there rank 0 reports.
    const int reader =
        static_cast<int>(number.value_or(0) % static_cast<std::size_t>(comm_.size()));
    Result<Bytes> object = Bytes();
    if (comm_.rank() == reader) object = checkpoint_->ReadObject(name);
    return BroadcastResult(comm_, reader, std::move(object));
  }

 private:
  // This rank's plan, and the findings of all.
  Result<ReadPlan> PlanTogether(const ReadRequest& request, const LoadContract& contract,
                                const CollectiveLoadOptions& options,
                                std::vector<LoadFinding>& findings) {
    SEALPOINT_RETURN_IF_ERROR(AgreeOnContract(comm_, contract));
    ResolvedRequest resolved;
    Result<ReadPlan> plan = options.threads < 1
                                ? InvalidArgument("a load with ", options.threads, " threads")
                                : PlanMine(*checkpoint_, request, contract, resolved);
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, plan.status()));
    auto checked = CheckContractTogether(comm_, checkpoint_->index(), resolved, contract);
    if (!checked.ok()) return std::move(checked).error().AtPath(checkpoint_->path());
    findings = std::move(checked).value();
    return plan;
  }

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
    OpenOptions local_options = options;
    local_options.check_files = false;
    auto opened = CheckpointImpl::Make(path, std::move(local_options),
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
