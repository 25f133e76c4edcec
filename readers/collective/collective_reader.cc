// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/collective_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/comm/same_call.h"
#include "lib/observe/phase_recorder.h"
#include "lib/pipeline/thread_pool.h"
#include "readers/collective/collective_contract.h"
#include "readers/collective/collective_load.h"
#include "readers/collective/load_plan.h"
#include "readers/collective/open_together.h"
#include "readers/load/checkpoint_impl.h"

namespace sealpoint {
namespace internal {
namespace {

// This rank's half of the contract, and its plan.
Result<ReadPlan> PlanMine(const CheckpointImpl& checkpoint, const ReadRequest& request,
                          LoadContract contract, bool is_to_be_read, ResolvedRequest& resolved) {
  contract.unexpected = OnMismatch::kAllow;
  contract.coverage = OnMismatch::kAllow;
  SEALPOINT_ASSIGN_OR_RETURN(resolved, checkpoint.Resolve(request, contract));
  Result<ReadPlan> plan = checkpoint.PlanResolved(resolved);
  if (plan.ok() && is_to_be_read)
    SEALPOINT_RETURN_IF_ERROR(InternalAccess::DataOf(*plan).CheckHasMemory());
  return plan;
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

std::string_view TextOf(OnMismatch policy) {
  switch (policy) {
    case OnMismatch::kError:
      return "error";
    case OnMismatch::kReport:
      return "report";
    case OnMismatch::kAllow:
      return "allow";
  }
  return "unknown";
}

// What ranks check together, they check by one contract, and they take part in the same exchanges.
CollectiveCall LoadCall(std::string_view kind, const std::string& path,
                        const LoadContract& contract, const CollectiveLoadOptions& options) {
  const auto text = [](OnMismatch policy) { return std::string(TextOf(policy)); };
  return {.kind = kind,
          .arguments = {{"checkpoint", path},
                        {"missing", text(contract.missing)},
                        {"unexpected", text(contract.unexpected)},
                        {"dtype", text(contract.dtype)},
                        {"shape", text(contract.shape)},
                        {"coverage", text(contract.coverage)},
                        {"share_chunks", options.share_chunks ? "on" : "off"}}};
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
    auto report = LoadTogether(request, contract, options, phases);
    if (report.ok()) return report;
    const std::string_view phase = PhaseName(phases.current_phase());
    return Describe(report.error(), StrCat("load, phase ", phase, ","));
  }

  Result<CollectiveLoadPlan> Plan(const ReadRequest& request, const LoadContract& contract,
                                  const CollectiveLoadOptions& options) override {
    auto plan = PlanLoads(request, contract, options);
    return plan.ok() ? std::move(plan) : Describe(plan.error(), "plan of a load");
  }

  Result<Bytes> ReadObject(std::string_view name) override {
    auto object = ReadObjectOnce(name);
    return object.ok() ? std::move(object)
                       : Describe(object.error(), StrCat("read of object ", name));
  }

 private:
  // Says of a failure of the communicator what it ended.
  Status Describe(const Status& error, std::string_view what) const {
    return DescribeCommFailure(comm_, error,
                               StrCat("collective ", what, " of ", checkpoint_->path()));
  }

  Result<CollectiveLoadReport> LoadTogether(const ReadRequest& request,
                                            const LoadContract& contract,
                                            const CollectiveLoadOptions& options,
                                            PhaseRecorder& phases) {
    CollectiveLoadReport report;
    SEALPOINT_ASSIGN_OR_RETURN(const ReadPlan plan,
                               PlanTogether(request, contract, options, true, report.findings));
    report.plan = plan.Summary();
    CollectiveLoad load(comm_, *checkpoint_, InternalAccess::DataOf(plan), options);
    SEALPOINT_RETURN_IF_ERROR(load.Run(phases, report));
    SEALPOINT_ASSIGN_OR_RETURN(report.all_bytes_read, SumOverRanks(comm_, report.bytes_read));
    report.phases = phases.report();
    return report;
  }

  Result<CollectiveLoadPlan> PlanLoads(const ReadRequest& request, const LoadContract& contract,
                                       const CollectiveLoadOptions& options) {
    std::vector<LoadFinding> findings;
    SEALPOINT_ASSIGN_OR_RETURN(const ReadPlan local_plan,
                               PlanTogether(request, contract, options, false, findings));
    CollectiveLoad load(comm_, *checkpoint_, InternalAccess::DataOf(local_plan), options);
    SEALPOINT_ASSIGN_OR_RETURN(const RankLoad rank_load, load.DryRun());
    SEALPOINT_ASSIGN_OR_RETURN(CollectiveLoadPlan plan, GatherLoads(comm_, rank_load));
    plan.findings = std::move(findings);
    return plan;
  }

  Result<Bytes> ReadObjectOnce(std::string_view name) {
    // A rank must not get another object than it asked for, nor wait for one that nobody reads.
    SEALPOINT_RETURN_IF_ERROR(BeginCall(comm_, {.kind = "read of an object",
                                                .arguments = {{"checkpoint", checkpoint_->path()},
                                                              {"object", std::string(name)}},
                                                .named_arguments_max = 2})
                                  .status());
    const std::optional<std::size_t> number = checkpoint_->index().FindObject(name);
    // Many objects are dealt to all ranks. What is not there rank 0 reports.
    const int reader =
        static_cast<int>(number.value_or(0) % static_cast<std::size_t>(comm_.size()));
    Result<Bytes> object = Bytes();
    if (comm_.rank() == reader) object = checkpoint_->ReadObject(name);
    return BroadcastResult(comm_, reader, std::move(object));
  }

  // This rank's plan, and the findings of all.
  Result<ReadPlan> PlanTogether(const ReadRequest& request, const LoadContract& contract,
                                const CollectiveLoadOptions& options, bool is_to_be_read,
                                std::vector<LoadFinding>& findings) {
    SEALPOINT_RETURN_IF_ERROR(BeginCall(comm_, LoadCall(is_to_be_read ? "load" : "plan of a load",
                                                        checkpoint_->path(), contract, options))
                                  .status());
    ResolvedRequest resolved;
    Result<ReadPlan> plan = PlanMine(*checkpoint_, request, contract, is_to_be_read, resolved);
    if (Status threads = CheckThreads("threads", options.threads); !threads.ok()) plan = threads;
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
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(AsText(checkpoint.marker_bytes()));
  out.Put(AsText(checkpoint.index_bytes()));
  return bytes;
}

// What rank 0 sent, opened on another rank.
Result<std::unique_ptr<CheckpointImpl>> OpenSent(ByteSpan message, const std::string& path,
                                                 OpenOptions options) {
  WireReader in(message);
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan marker, in.Span());
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan index, in.Span());
  options.check_files = false;
  return CheckpointImpl::Make(path, std::move(options),
                              GivenFiles{.marker = Bytes(marker.begin(), marker.end()),
                                         .index = Bytes(index.begin(), index.end())});
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
    auto opened = OpenSent(all, path, options);
    status = opened.status();
    if (opened.ok()) checkpoint = std::move(opened).value();
  }
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm, status));
  return checkpoint;
}

}  // namespace

Result<std::unique_ptr<CollectiveReader>> OpenTogether(Communicator& comm, const std::string& path,
                                                       const OpenOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(auto checkpoint, OpenOnce(comm, path, options));
  std::unique_ptr<CollectiveReader> reader =
      std::make_unique<CollectiveReaderImpl>(comm, std::move(checkpoint));
  return reader;
}

}  // namespace internal

Result<std::unique_ptr<CollectiveReader>> CollectiveReader::Open(Communicator& comm,
                                                                 const std::string& path,
                                                                 const OpenOptions& options) {
  const internal::CollectiveCall call = {.kind = "opening", .arguments = {{"path", path}}};
  const Status begun = internal::BeginCall(comm, call).status();
  auto reader = begun.ok() ? internal::OpenTogether(comm, path, options)
                           : Result<std::unique_ptr<CollectiveReader>>(begun);
  if (reader.ok()) return reader;
  return internal::DescribeCommFailure(comm, reader.error(),
                                       internal::StrCat("collective opening of ", path));
}

}  // namespace sealpoint
