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
#include "lib/pipeline/load_threads.h"
#include "readers/collective/arrival_check.h"
#include "readers/collective/collective_contract.h"
#include "readers/collective/collective_load.h"
#include "readers/collective/open_together.h"
#include "readers/load/checkpoint_impl.h"
#include "readers/load/plan_text.h"
#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint {
namespace internal::collective {
namespace {

double Ratio(std::uint64_t bytes_read, std::uint64_t bytes_requested) {
  if (bytes_requested == 0) return 0;
  return static_cast<double>(bytes_read) / static_cast<double>(bytes_requested);
}

// In the order in which they are sent; the ratio follows from them.
template <typename Load, typename Visit>
Status VisitNumbers(Load& load, const Visit& visit) {
  auto& alone = load.alone;
  for (auto* number : {&alone.items, &alone.bytes_requested, &alone.bytes_read,
                       &alone.table_bytes_read, &alone.files, &alone.requests, &alone.chunks,
                       &load.bytes_read, &load.requests, &load.files, &load.bytes_received}) {
    SEALPOINT_RETURN_IF_ERROR(visit(*number));
  }
  return {};
}

Result<RankLoad> DecodeLoad(ByteSpan bytes) {
  WireReader in(bytes);
  RankLoad load;
  SEALPOINT_ASSIGN_OR_RETURN(load.host, in.Text());
  SEALPOINT_RETURN_IF_ERROR(VisitNumbers(load, [&](std::uint64_t& number) -> Status {
    SEALPOINT_ASSIGN_OR_RETURN(number, in.Number());
    return {};
  }));
  load.alone.amplification = Ratio(load.alone.bytes_read, load.alone.bytes_requested);
  return load;
}

// "12.0 MiB (x 1.200) in 3 ranges of 2 files".
std::string CostText(std::uint64_t bytes_read, std::uint64_t bytes_requested,
                     std::uint64_t requests, std::uint64_t files) {
  return StrCat(BytesText(bytes_read), " (", load::RatioText(Ratio(bytes_read, bytes_requested)),
                ") in ", load::CountText(requests, "range"), " of ",
                load::CountText(files, "file"));
}

// Gathers on every rank what each rank would do, and the sums. Collective. Takes memory linear in
// the number of ranks, independent of the size of their requests. Errors: Comm, Timeout.
Result<CollectiveLoadPlan> GatherLoads(Communicator& comm, const RankLoad& local_load) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(local_load.host);
  SEALPOINT_RETURN_IF_ERROR(VisitNumbers(local_load, [&](std::uint64_t number) {
    out.Put(number);
    return Status();
  }));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  CollectiveLoadPlan plan;
  for (const Bytes& message : all) {
    SEALPOINT_ASSIGN_OR_RETURN(RankLoad load, DecodeLoad(message));
    plan.bytes_requested += load.alone.bytes_requested;
    plan.bytes_read_alone += load.alone.bytes_read;
    plan.bytes_read += load.bytes_read;
    plan.bytes_received += load.bytes_received;
    plan.ranks.push_back(std::move(load));
  }
  plan.amplification = Ratio(plan.bytes_read, plan.bytes_requested);
  return plan;
}

// This rank's half of the contract, and its plan.
Result<ReadPlan> PlanMine(const load::CheckpointImpl& checkpoint, const ReadRequest& request,
                          LoadContract contract, bool is_to_be_read,
                          load::ResolvedRequest& resolved) {
  SEALPOINT_RETURN_IF_ERROR(load::CheckCoverageOfSteps(request, contract));
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
  for (const Bytes& message : all) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t number, WireReader(message).Number());
    sum += number;
  }
  return sum;
}

// How many ranks, this one included, are on its host and may run on the same processors.
// Collective. Errors: Comm, Timeout.
Result<int> CountSharingRanks(Communicator& comm) {
  Bytes bytes;
  WireWriter(bytes).Put(StrCat(comm.host(), "\n", pipeline::ProcessorsText()));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  return static_cast<int>(std::count(all.begin(), all.end(), bytes));
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
comm::CollectiveCall LoadCall(std::string_view kind, const std::string& path,
                              const LoadContract& contract, const CollectiveLoadOptions& options) {
  const auto text = [](OnMismatch policy) { return std::string(TextOf(policy)); };
  return {.kind = kind,
          .arguments = {{"checkpoint", path},
                        {"missing", text(contract.missing)},
                        {"unexpected", text(contract.unexpected)},
                        {"dtype", text(contract.dtype)},
                        {"shape", text(contract.shape)},
                        {"coverage", text(contract.coverage)},
                        {"share_chunks", options.share_chunks ? "on" : "off"},
                        {"verify_arrival", options.verify_arrival ? "on" : "off"}}};
}

class CollectiveReaderImpl final : public CollectiveReader {
 public:
  CollectiveReaderImpl(Communicator& comm, std::unique_ptr<load::CheckpointImpl> checkpoint)
      : comm_(comm), checkpoint_(std::move(checkpoint)) {}

  const Checkpoint& checkpoint() const override { return *checkpoint_; }

  Result<CollectiveLoadReport> Load(const ReadRequest& request, const LoadContract& contract,
                                    const CollectiveLoadOptions& options) override {
    observe::PhaseRecorder phases(options.on_progress);
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
    return comm::DescribeCommFailure(comm_, error,
                                     StrCat("collective ", what, " of ", checkpoint_->path()));
  }

  Result<CollectiveLoadReport> LoadTogether(const ReadRequest& request,
                                            const LoadContract& contract,
                                            const CollectiveLoadOptions& options,
                                            observe::PhaseRecorder& phases) {
    CollectiveLoadReport report;
    load::ResolvedRequest resolved_request;
    SEALPOINT_ASSIGN_OR_RETURN(
        const ReadPlan plan,
        PlanTogether(request, contract, options, true, resolved_request, report.findings));
    if (!options.verify_arrival) resolved_request = {};
    const ArrivalCheck arrival(comm_, checkpoint_->index(), resolved_request);
    if (options.verify_arrival) SEALPOINT_RETURN_IF_ERROR(arrival.CheckRegions());
    report.plan = plan.Summary();
    if (sharing_ranks_ == 0) {
      SEALPOINT_ASSIGN_OR_RETURN(sharing_ranks_, CountSharingRanks(comm_));
    }
    SEALPOINT_ASSIGN_OR_RETURN(
        const int threads,
        pipeline::LoadThreads("threads", options.threads, sharing_ranks_, report.plan.bytes_read));
    CollectiveLoad load(comm_, *checkpoint_, InternalAccess::DataOf(plan), options,
                        {.count = threads, .sharing_ranks = sharing_ranks_});
    SEALPOINT_RETURN_IF_ERROR(load.Run(phases, report));
    if (options.verify_arrival) {
      SEALPOINT_RETURN_IF_ERROR(
          arrival.CheckMemory(threads, checkpoint_->devices()).AtPath(checkpoint_->path()));
    }
    SEALPOINT_ASSIGN_OR_RETURN(report.all_bytes_read, SumOverRanks(comm_, report.bytes_read));
    report.phases = phases.report();
    return report;
  }

  Result<CollectiveLoadPlan> PlanLoads(const ReadRequest& request, const LoadContract& contract,
                                       const CollectiveLoadOptions& options) {
    std::vector<LoadFinding> findings;
    load::ResolvedRequest resolved;
    SEALPOINT_ASSIGN_OR_RETURN(const ReadPlan local_plan,
                               PlanTogether(request, contract, options, false, resolved, findings));
    CollectiveLoad load(comm_, *checkpoint_, InternalAccess::DataOf(local_plan), options, {});
    SEALPOINT_ASSIGN_OR_RETURN(const RankLoad rank_load, load.DryRun());
    SEALPOINT_ASSIGN_OR_RETURN(CollectiveLoadPlan plan, GatherLoads(comm_, rank_load));
    plan.findings = std::move(findings);
    return plan;
  }

  Result<Bytes> ReadObjectOnce(std::string_view name) {
    // A rank must not get another object than it asked for, nor wait for one that nobody reads.
    SEALPOINT_RETURN_IF_ERROR(
        comm::BeginCall(comm_, {.kind = "read of an object",
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
    return comm::BroadcastResult(comm_, reader, std::move(object));
  }

  // This rank's plan, and the findings of all.
  Result<ReadPlan> PlanTogether(const ReadRequest& request, const LoadContract& contract,
                                const CollectiveLoadOptions& options, bool is_to_be_read,
                                load::ResolvedRequest& resolved,
                                std::vector<LoadFinding>& findings) {
    Result<ReadPlan> plan = options.failure.ok()
                                ? PlanMine(*checkpoint_, request, contract, is_to_be_read, resolved)
                                : Result<ReadPlan>(comm::OwnFailure(options.failure));
    if (plan && options.verify_arrival) {
      const Status checked = ArrivalCheck(comm_, checkpoint_->index(), resolved).CheckItems();
      if (!checked.ok()) plan = checked;
    }
    const Result<int> threads = pipeline::LoadThreads("threads", options.threads, 1, 0);
    if (!threads) plan = threads.error();
    SEALPOINT_ASSIGN_OR_RETURN(const comm::CallFlags any,
                               comm::BeginCall(comm_,
                                               LoadCall(is_to_be_read ? "load" : "plan of a load",
                                                        checkpoint_->path(), contract, options),
                                               {plan.ok() ? 0u : 1u}, !plan.ok()));
    if (any.front() != 0) SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, plan.status()));
    auto checked = CheckContractTogether(comm_, checkpoint_->index(), resolved, contract);
    if (!checked.ok()) return std::move(checked).error().AtPath(checkpoint_->path());
    findings = std::move(checked).value();
    return plan;
  }

  Communicator& comm_;
  const std::unique_ptr<load::CheckpointImpl> checkpoint_;
  int sharing_ranks_ = 0;  // 0: not counted yet, the same on all ranks
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
Result<std::unique_ptr<load::CheckpointImpl>> OpenSent(ByteSpan message, const std::string& path,
                                                       OpenOptions options) {
  WireReader in(message);
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan marker, in.Span());
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan index, in.Span());
  options.check_files = false;
  return load::CheckpointImpl::Make(
      path, std::move(options),
      container::GivenFiles{.marker = Bytes(marker.begin(), marker.end()),
                            .index = Bytes(index.begin(), index.end())});
}

Result<std::unique_ptr<load::CheckpointImpl>> OpenOnce(Communicator& comm, const std::string& path,
                                                       const OpenOptions& options) {
  constexpr int kRoot = 0;
  std::unique_ptr<load::CheckpointImpl> checkpoint;
  Result<Bytes> files = Bytes();
  if (comm.rank() == kRoot) {
    auto opened = load::CheckpointImpl::Make(path, options, {});
    if (opened.ok()) {
      checkpoint = std::move(opened).value();
      files = Join(*checkpoint);
    } else {
      files = opened.error();
    }
  }
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes all, comm::BroadcastResult(comm, kRoot, std::move(files)));
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

}  // namespace internal::collective

Result<std::unique_ptr<CollectiveReader>> CollectiveReader::Open(Communicator& comm,
                                                                 const std::string& path,
                                                                 const OpenOptions& options,
                                                                 const Status& failure) {
  const internal::comm::CollectiveCall call = {.kind = "opening", .arguments = {{"path", path}}};
  const Status begun = internal::comm::CheckSameCall(comm, call, failure);
  auto reader = begun.ok() ? internal::collective::OpenTogether(comm, path, options)
                           : Result<std::unique_ptr<CollectiveReader>>(begun);
  if (reader.ok()) return reader;
  return internal::comm::DescribeCommFailure(comm, reader.error(),
                                             internal::StrCat("collective opening of ", path));
}

std::string CollectiveLoadPlan::ToString() const {
  using internal::StrCat;
  using internal::load::CountText;
  std::uint64_t requests_alone = 0;
  std::uint64_t requests = 0;
  for (const RankLoad& load : ranks) {
    requests_alone += load.alone.requests;
    requests += load.requests;
  }
  std::string text = StrCat(
      CountText(ranks.size(), "rank"), ": ", BytesText(bytes_requested), " requested; alone ",
      BytesText(bytes_read_alone), " (",
      internal::load::RatioText(internal::collective::Ratio(bytes_read_alone, bytes_requested)),
      ") in ", CountText(requests_alone, "range"), "; together ", BytesText(bytes_read), " (",
      internal::load::RatioText(amplification), ") in ", CountText(requests, "range"), "; ",
      BytesText(bytes_received), " sent\n");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankLoad& load = ranks[rank];
    const PlanSummary& alone = load.alone;
    text += StrCat("  rank ", rank, " on ", Printable(load.host), ": ",
                   BytesText(alone.bytes_requested), " requested; alone ",
                   internal::collective::CostText(alone.bytes_read, alone.bytes_requested,
                                                  alone.requests, alone.files),
                   "; together ",
                   internal::collective::CostText(load.bytes_read, alone.bytes_requested,
                                                  load.requests, load.files),
                   "\n");
  }
  return text;
}

}  // namespace sealpoint
