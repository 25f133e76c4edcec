// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/layout/replicas.h"
#include "lib/writer/declaration_summary.h"

namespace sealpoint::internal::saver {
namespace {

Status CheckReplicas(const std::vector<int>& replicas, int rank, int size) {
  if (replicas.empty()) return {};
  if (!std::binary_search(replicas.begin(), replicas.end(), rank)) {
    return InvalidArgument("rank ", rank, " declares replicas but does not list itself");
  }
  if (replicas.back() >= size) {
    return InvalidArgument("replica rank ", replicas.back(), " is not below ", size, ", the ranks");
  }
  return {};
}

Status CheckReplicas(const Declaration& declaration, int rank, int size) {
  const auto& lists = InternalAccess::SummaryOf(declaration).replica_groups();
  const bool all_ok = std::all_of(lists.begin(), lists.end(), [&](const auto& list) {
    return CheckReplicas(list.first, rank, size).ok();
  });
  if (all_ok) return {};
  for (const DeclaredTensor& held : declaration.tensors()) {
    SEALPOINT_RETURN_IF_ERROR(CheckReplicas(held.replicas, rank, size).AtTensor(held.tensor.name));
  }
  return {};
}

// A declaration is large, and its names are in another order than its slots: planning goes through
// it once, by tensor name, then region, the order that all ranks of a replica group share.
class Planner {
 public:
  explicit Planner(const Declaration& declaration);

  void AddTensor(std::span<const std::size_t> slots);
  // `writers` are those of the replicas that write, `rank` among them.
  void Divide(const writer::ReplicaGroupSummary& group, const std::vector<int>& writers, int rank);
  SavePlan Finish();

 private:
  // The regions that the ranks of one replica list hold, and this rank's shard of each.
  struct Shared {
    std::vector<layout::HeldRun> held{};
    std::vector<PlannedShard*> shards{};
  };

  void AddSlot(std::size_t slot);

  const writer::DeclarationSummary& summary_;
  // By group. Reserved in full before, because Shared keeps pointers to the elements.
  std::vector<std::vector<PlannedShard>> shards_;
  std::vector<std::optional<Shared>> shared_;  // by list of replicas; none for the empty list
  SavePlan plan_;
};

Planner::Planner(const Declaration& declaration)
    : summary_(InternalAccess::SummaryOf(declaration)),
      shards_(summary_.blob_groups().size()),
      shared_(summary_.replica_groups().size()) {
  for (const auto& [name, group] : summary_.blob_groups()) {
    shards_[group.number].reserve(group.slot_count);
  }
  for (const auto& [replicas, group] : summary_.replica_groups()) {
    if (replicas.empty()) continue;
    Shared& shared = shared_[group.number].emplace();
    shared.held.reserve(group.region_count);
    shared.shards.reserve(group.region_count);
  }
}

void Planner::AddTensor(std::span<const std::size_t> slots) {
  if (summary_.slots()[slots.front()].is_empty_tensor) {
    plan_.empty_slots.push_back(slots.front());  // once, however many slots it has
    return;
  }
  if (slots.size() == 1) return AddSlot(slots.front());
  std::vector<std::pair<Region, std::size_t>> sorted;  // by region
  sorted.reserve(slots.size());
  for (const std::size_t slot : slots) sorted.emplace_back(summary_.held(slot).region(), slot);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [region, slot] : sorted) AddSlot(slot);
}

void Planner::AddSlot(std::size_t slot) {
  const writer::SlotSummary& summary = summary_.slots()[slot];
  if (summary.is_empty) return;
  PlannedShard& shard = shards_[summary.blob_group].emplace_back(PlannedShard{.slot = slot});
  if (std::optional<Shared>& shared = shared_[summary.replica_group]) {
    shared->held.push_back({.run = summary.run,
                            .element_size = summary.element_size,
                            .chunk_size_bytes = summary.chunk_size_bytes});
    shared->shards.push_back(&shard);
    return;
  }
  shard.run = summary.run;
  plan_.tensor_bytes += summary.run.size() * summary.element_size;
}

void Planner::Divide(const writer::ReplicaGroupSummary& group, const std::vector<int>& writers,
                     int rank) {
  const Shared& shared = *shared_[group.number];
  const auto holder = static_cast<std::size_t>(
      std::lower_bound(writers.begin(), writers.end(), rank) - writers.begin());
  for (const layout::HolderShare& share : layout::DivideEvenly(shared.held, writers.size())) {
    if (share.holder != holder) continue;
    shared.shards[share.held_index]->run = share.run;
    plan_.tensor_bytes += share.run.size() * shared.held[share.held_index].element_size;
  }
}

SavePlan Planner::Finish() {
  std::vector<PlannedShard>& all = plan_.shards;
  for (const auto& [name, group] : summary_.blob_groups()) {
    std::vector<PlannedShard>& shards = shards_[group.number];
    std::erase_if(shards, [](const PlannedShard& shard) { return shard.run.size() == 0; });
    if (all.empty()) {
      all = std::move(shards);
    } else {
      all.insert(all.end(), shards.begin(), shards.end());
    }
  }
  return std::move(plan_);
}

}  // namespace

bool Writes(std::span<const int> writer_ranks, int rank) {
  return writer_ranks.empty() || std::binary_search(writer_ranks.begin(), writer_ranks.end(), rank);
}

Result<SavePlan> MakeSavePlan(const Declaration& declaration, int rank, int size,
                              std::span<const int> writer_ranks, Division division) {
  SEALPOINT_RETURN_IF_ERROR(CheckReplicas(declaration, rank, size));
  if (!Writes(writer_ranks, rank)) return SavePlan();
  Planner planner(declaration);
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  summary.ForEachTensor([&](std::span<const std::size_t> slots) { planner.AddTensor(slots); });
  for (const auto& [replicas, group] : summary.replica_groups()) {
    if (replicas.empty()) continue;
    std::vector<int> writers;
    std::copy_if(replicas.begin(), replicas.end(), std::back_inserter(writers),
                 [&](int holder) { return Writes(writer_ranks, holder); });
    if (division == Division::kFirstRank && !writers.empty()) {
      if (writers.front() != rank) continue;
      writers.resize(1);
    }
    planner.Divide(group, writers, rank);
  }
  return planner.Finish();
}

}  // namespace sealpoint::internal::saver
