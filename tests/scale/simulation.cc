// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/simulation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "lib/base/internal_access.h"
#include "lib/metadata/index_parts.h"
#include "lib/metadata/merge_manifests.h"
#include "lib/saver/check_declarations.h"
#include "lib/saver/merge_at_owners.h"
#include "lib/saver/owner_rank.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/commit_steps.h"
#include "tests/scale/capturing_communicator.h"
#include "tests/support/process/allocation_watch.h"

namespace sealpoint::testing {
namespace {

using internal::metadata::IndexAttributes;
using internal::writer::CommittedBlob;

constexpr const char* kDirectory = "checkpoint";

// Measures this thread's time on its core, so that neighbours on the machine do not count.
class CpuWatch {
 public:
  double seconds() const { return Now() - begin_; }

 private:
  static double Now() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  double begin_ = Now();
};

void Require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

template <typename T>
T Require(Result<T> result) {
  Require(result.status());
  return std::move(result).value();
}

// Calls work(i) for all i below `count`, in order where there is one thread.
void ForEachOnThreads(int threads, std::size_t count,
                      const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
}

}  // namespace

void Spread::Add(double value) {
  sum += value;
  max = std::max(max, value);
  ++count;
}

// What one rank cost.
struct Simulation::RankCost {
  std::uint64_t slots = 0;
  double declare_seconds = 0;
  double first_plan_seconds = 0;
  double later_plan_seconds = 0;
  std::vector<std::uint64_t> sent_sizes{};  // by owner
  Bytes to_owner{};
  Bytes to_all{};
};

Simulation::Simulation(Scenario scenario, Options options)
    : scenario_(std::move(scenario)),
      options_(options),
      attempt_(AttemptId::FromHex("00112233445566778899aabbccddeeff").value()) {
  figures_.ranks = static_cast<std::uint64_t>(size());
}

Declaration Simulation::Declare(int rank) const {
  Declaration declaration;
  ForEachHeld(scenario_, rank, [&](const TensorSpec& tensor, const LocalLayout& layout) {
    Require(declaration.Add(tensor, layout).status());
  });
  return declaration;
}

std::vector<HollowBlob> Simulation::PlanRank(int rank, RankCost& cost) {
  const CpuWatch declare;
  const Declaration declaration = Declare(rank);
  cost.declare_seconds = declare.seconds();
  cost.slots = declaration.tensors().size();
  const CpuWatch plan_watch;
  static_cast<void>(declaration.ComputeDigest());
  cost.later_plan_seconds = plan_watch.seconds();
  const internal::saver::SavePlan plan =
      Require(internal::saver::MakeSavePlan(declaration, rank, size(), {}));
  if (options_.with_agreement) {
    CapturingCommunicator comm(rank, size(), checker_);
    static_cast<void>(
        internal::saver::FastCheckDeclarations(comm, declaration, plan, {}, Limits()));
    cost.sent_sizes = comm.sent_sizes();
    cost.to_owner = comm.to_owner();
    cost.to_all = comm.told_to_all();
  }
  cost.first_plan_seconds = plan_watch.seconds();
  return MakeHollowBlobs(declaration, plan, rank, attempt_);
}

void Simulation::Note(int rank, const RankCost& cost) {
  figures_.slots_max = std::max(figures_.slots_max, cost.slots);
  figures_.declare_seconds.Add(cost.declare_seconds);
  figures_.first_plan_seconds.Add(cost.first_plan_seconds);
  figures_.later_plan_seconds.Add(cost.later_plan_seconds);
  if (cost.sent_sizes.empty()) return;
  std::uint64_t sent = 0;
  for (std::size_t owner = 0; owner < cost.sent_sizes.size(); ++owner) {
    sent += cost.sent_sizes[owner];
    owned_bytes_[owner] += cost.sent_sizes[owner];
  }
  figures_.declared_bytes.Add(static_cast<double>(sent));
  to_owner_[static_cast<std::size_t>(rank)] = cost.to_owner;
  to_all_[static_cast<std::size_t>(rank)] = cost.to_all;
}

void Simulation::ChooseOwner() {
  std::vector<int> names(figures_.ranks);
  const auto count = [&](const std::vector<ScenarioTensor>& tensors) {
    for (const ScenarioTensor& member : tensors) {
      ++names[internal::saver::OwnerRank(member.tensor.name, size())];
    }
  };
  count(scenario_.everywhere);
  for (const auto& tensors : scenario_.by_place) count(tensors);
  for (const ScenarioBucket& bucket : scenario_.buckets) count(bucket.members);
  checker_ = static_cast<std::size_t>(std::max_element(names.begin(), names.end()) - names.begin());
}

void Simulation::MeasureCheck() {
  for (const std::uint64_t bytes : owned_bytes_) {
    figures_.owned_bytes.Add(static_cast<double>(bytes));
  }
  CapturingCommunicator comm(static_cast<int>(checker_), std::move(to_owner_), std::move(to_all_));
  const CpuWatch watch;
  figures_.adds_up =
      Require(internal::saver::FastCheckDeclarations(comm, Declaration(), {}, {}, Limits()));
  figures_.owner_seconds = watch.seconds();
}

void Simulation::PlanAndWrite() {
  ChooseOwner();
  summaries_.resize(figures_.ranks);
  to_owner_.resize(figures_.ranks);
  to_all_.resize(figures_.ranks);
  owned_bytes_.resize(figures_.ranks);
  const std::size_t planned = figures_.ranks / options_.stride;
  ForEachOnThreads(options_.threads, planned, [&](std::size_t number) {
    const std::size_t rank = number * options_.stride;
    RankCost cost;
    const std::vector<HollowBlob> blobs = PlanRank(static_cast<int>(rank), cost);
    std::vector<BlobSummary> summaries;
    for (const HollowBlob& blob : blobs) summaries.push_back(blob.summary);
    const std::uint64_t bytes = SerializeSummaries(summaries).size();
    const std::lock_guard lock(mutex_);
    Note(static_cast<int>(rank), cost);
    figures_.summary_bytes += bytes;
    for (const HollowBlob& blob : blobs) {
      const internal::writer::DecodedSummary& decoded = *InternalAccess::DecodedOf(blob.summary);
      ++figures_.blobs;
      figures_.shards += decoded.pin.shard_count;
      figures_.records += decoded.pin.record_count;
      figures_.raw_bytes += decoded.trailer.raw_bytes;
      storage_->Add(blob);
    }
    summaries_[rank] = std::move(summaries);
  });
  if (options_.with_agreement && options_.stride == 1) MeasureCheck();
}

// The exchange and the merge of every rank: what arrives at rank 0.
std::vector<Bytes> Simulation::MergeAll() {
  std::vector<Bytes> ids;
  for (const auto& of_rank : summaries_) ids.push_back(internal::saver::EncodeBlobIds(of_rank));
  const std::vector<BlobId> blobs = Require(internal::saver::DecodeBlobIds(ids));
  std::vector<std::vector<Bytes>> received(figures_.ranks);  // by owner; no empty messages
  ForEachOnThreads(options_.threads, figures_.ranks, [&](std::size_t rank) {
    std::vector<Bytes> outgoing = internal::saver::EncodeForOwners(summaries_[rank], blobs, size());
    const std::lock_guard lock(mutex_);
    double sent = 0;
    for (std::size_t owner = 0; owner < outgoing.size(); ++owner) {
      if (outgoing[owner].empty()) continue;
      sent += static_cast<double>(outgoing[owner].size());
      outgoing[owner].shrink_to_fit();
      received[owner].push_back(std::move(outgoing[owner]));
    }
    figures_.entry_bytes.Add(sent);
  });
  std::vector<Bytes> gathered(figures_.ranks);
  ForEachOnThreads(options_.threads, figures_.ranks, [&](std::size_t owner) {
    std::uint64_t bytes = 0;
    for (const Bytes& message : received[owner]) bytes += message.size();
    const CpuWatch watch;
    const Bytes part = Require(internal::metadata::MergeEntries(received[owner], blobs, Limits()));
    gathered[owner] = internal::saver::EncodeForCommitter(summaries_[owner], part);
    const double seconds = watch.seconds();
    received[owner] = {};
    const std::lock_guard lock(mutex_);
    figures_.merged_bytes.Add(static_cast<double>(bytes));
    figures_.merge_seconds.Add(seconds);
    figures_.gathered_bytes += gathered[owner].size();
  });
  return gathered;
}

void Simulation::MergeAndCommit() {
  const std::vector<Bytes> gathered = MergeAll();
  Require(storage_->CreateDirectories(kDirectory));
  const auto directory = Require(storage_->OpenDirectory(kDirectory));
  const Capabilities capabilities = Require(directory->Probe("probe"));
  const CommitOptions options{.attempt = attempt_, .step = 1, .mesh = scenario_.mesh.axes()};
  // Phases are timed by the clock; here by this thread's share of its core.
  std::map<Phase, double> seconds;
  CpuWatch watch;
  internal::observe::PhaseRecorder recorder([&](const PhaseEvent& event) {
    if (event.kind == PhaseEvent::Kind::kBegin) watch = CpuWatch();
    if (event.kind == PhaseEvent::Kind::kEnd) seconds[event.phase] = watch.seconds();
  });
  if (CanWatchAllocations()) BeginAllocationWatch();
  const internal::saver::GatheredParts parts =
      Require(internal::saver::DecodeForCommitter(gathered));
  const CommitInfo info = Require(internal::writer::RunCommit(
      *directory, capabilities.publish, options, parts.blobs,
      [&](const IndexAttributes& attributes) {
        return internal::saver::JoinGathered(parts, attributes, Limits());
      },
      recorder));
  if (CanWatchAllocations()) figures_.commit_memory_bytes = EndAllocationWatch().live_bytes;
  figures_.join_seconds = seconds[Phase::kBuildIndex];
  figures_.check_seconds = seconds[Phase::kCheckIndex];
  figures_.index_bytes = info.index_bytes;
  figures_.bytes_per_shard =
      static_cast<double>(info.index_bytes) / static_cast<double>(figures_.shards);
}

Bytes Simulation::IndexOfSummaries() const {
  std::vector<internal::metadata::BlobContribution> contributions;
  for (const auto& of_rank : summaries_) {
    for (const BlobSummary& summary : of_rank) {
      const internal::writer::DecodedSummary& decoded = *InternalAccess::DecodedOf(summary);
      contributions.push_back({decoded.pin, &decoded.manifest});
    }
  }
  const IndexAttributes attributes{.created_unix_ns = checkpoint_->created_unix_ns(),
                                   .mesh = checkpoint_->mesh(),
                                   .provenance = checkpoint_->provenance()};
  return Require(internal::metadata::EncodeIndex(contributions, attributes, Limits()));
}

void Simulation::Open() {
  if (CanWatchAllocations()) BeginAllocationWatch();
  const CpuWatch watch;
  checkpoint_ = Require(Checkpoint::Open(kDirectory, {.storage = storage_}));
  figures_.open_seconds = watch.seconds();
  if (CanWatchAllocations()) figures_.open_memory_bytes = EndAllocationWatch().live_bytes;
}

LoadFigures Simulation::PlanLoad(const Scenario& target, int rank, const std::string& group) const {
  ReadRequest request;
  ForEachHeld(target, rank, [&](const TensorSpec& tensor, const LocalLayout& layout) {
    if (!group.empty() && tensor.group != group) return;
    request.Add(tensor.name, layout, MutableMemoryView::PlanOnly());
  });
  LoadFigures figures;
  if (CanWatchAllocations()) BeginAllocationWatch();
  const CpuWatch watch;
  const ReadPlan plan = Require(checkpoint_->Plan(request, LoadContract::Partial()));
  figures.seconds = watch.seconds();
  if (CanWatchAllocations()) figures.memory_bytes = EndAllocationWatch().live_bytes;
  figures.plan = plan.Summary();
  return figures;
}

}  // namespace sealpoint::testing
