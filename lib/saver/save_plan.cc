// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/replicas.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {
namespace {

using SlotsByHolders = std::map<std::vector<int>, std::vector<std::size_t>>;

Status CheckReplicas(const std::vector<int>& replicas, int rank, int size) {
  if (!std::binary_search(replicas.begin(), replicas.end(), rank)) {
    return InvalidArgument("rank ", rank, " declares replicas but does not list itself");
  }
  if (replicas.back() >= size) {
    return InvalidArgument("replica rank ", replicas.back(), " is not below ", size, ", the ranks");
  }
  return Status();
}

// By tensor name, then region: the order that all ranks of a replica group share.
std::vector<std::size_t> CanonicalOrder(const Declaration& declaration) {
  std::vector<std::size_t> slots = declaration.SlotsByName();
  const auto name = [&](std::size_t i) -> const std::string& {
    return declaration.tensors()[slots[i]].tensor.name;
  };
  for (std::size_t begin = 0; begin < slots.size();) {
    std::size_t end = begin + 1;
    while (end < slots.size() && name(end) == name(begin)) ++end;
    const auto first = slots.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(
        first, first + static_cast<std::ptrdiff_t>(end - begin), [&](std::size_t a, std::size_t b) {
          return HeldRegionOf(declaration.tensors()[a]) < HeldRegionOf(declaration.tensors()[b]);
        });
    begin = end;
  }
  return slots;
}

Run HeldRunOf(const HeldTensor& held) {
  return held.region ? held.region->run : Region::Whole(held.tensor.shape).run;
}

// `slots` are those of one replica group in canonical order, `writers` those of its ranks that
// write, `rank` among them.
void DivideGroup(const Declaration& declaration, const std::vector<int>& writers, int rank,
                 const std::vector<std::size_t>& slots, SavePlan& plan) {
  std::vector<HeldRun> held;
  held.reserve(slots.size());
  for (const std::size_t slot : slots) {
    const HeldTensor& one = declaration.tensors()[slot];
    held.push_back({.run = HeldRunOf(one),
                    .element_size = ElementSize(one.tensor),
                    .chunk_size_bytes = one.tensor.chunk_size_bytes});
  }
  const auto mine = static_cast<std::size_t>(
      std::lower_bound(writers.begin(), writers.end(), rank) - writers.begin());
  for (const Piece& piece : DivideEvenly(held, writers.size())) {
    if (piece.holder == mine) plan.pieces.push_back({slots[piece.held_index], piece.run});
  }
}

// By group, then in the canonical order of the slots; of one slot there is one piece.
void SortPieces(const Declaration& declaration, const std::vector<std::size_t>& order,
                std::vector<PlannedPiece>& pieces) {
  std::vector<const PlannedPiece*> by_slot(order.size());
  for (const PlannedPiece& piece : pieces) by_slot[piece.slot] = &piece;
  std::map<std::string_view, std::vector<PlannedPiece>> by_group;
  for (const std::size_t slot : order) {
    if (by_slot[slot] == nullptr) continue;
    by_group[declaration.tensors()[slot].tensor.group].push_back(*by_slot[slot]);
  }
  std::vector<PlannedPiece> sorted;
  sorted.reserve(pieces.size());
  for (const auto& [group, of_group] : by_group) {
    sorted.insert(sorted.end(), of_group.begin(), of_group.end());
  }
  pieces = std::move(sorted);
}

}  // namespace

Region HeldRegionOf(const HeldTensor& held) {
  return held.region ? *held.region : Region::Whole(held.tensor.shape);
}

bool Writes(std::span<const int> writer_ranks, int rank) {
  return writer_ranks.empty() || std::binary_search(writer_ranks.begin(), writer_ranks.end(), rank);
}

Result<SavePlan> MakeSavePlan(const Declaration& declaration, int rank, int size,
                              std::span<const int> writer_ranks) {
  SavePlan plan;
  const std::vector<std::size_t> order = CanonicalOrder(declaration);
  SlotsByHolders groups;
  for (const std::size_t slot : order) {
    const HeldTensor& held = declaration.tensors()[slot];
    if (!held.replicas.empty()) {
      SEALPOINT_RETURN_IF_ERROR(
          CheckReplicas(held.replicas, rank, size).AtTensor(held.tensor.name));
    }
    if (!Writes(writer_ranks, rank)) continue;
    if (IsEmpty(held.tensor)) {
      plan.empty_slots.push_back(slot);
    } else if (held.replicas.empty()) {
      plan.pieces.push_back({slot, HeldRunOf(held)});
    } else {
      groups[held.replicas].push_back(slot);
    }
  }
  for (const auto& [replicas, slots] : groups) {
    std::vector<int> writers;
    std::copy_if(replicas.begin(), replicas.end(), std::back_inserter(writers),
                 [&](int replica) { return Writes(writer_ranks, replica); });
    DivideGroup(declaration, writers, rank, slots, plan);
  }
  SortPieces(declaration, order, plan.pieces);
  for (const PlannedPiece& piece : plan.pieces) {
    plan.tensor_bytes += piece.run.size() * ElementSize(declaration.tensors()[piece.slot].tensor);
  }
  return plan;
}

}  // namespace sealpoint::internal
