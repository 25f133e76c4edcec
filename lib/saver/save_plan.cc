// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/replicas.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {
namespace {

using SlotsByGroup = std::map<std::vector<int>, std::vector<std::size_t>>;

Status CheckReplicas(const std::vector<int>& replicas, int rank, int size) {
  if (!std::binary_search(replicas.begin(), replicas.end(), rank)) {
    return InvalidArgument("rank ", rank, " declares replicas but does not list itself");
  }
  if (replicas.back() >= size) {
    return InvalidArgument("replica rank ", replicas.back(), " is not below ", size, ", the ranks");
  }
  return Status();
}

// Slots of one replica group in the order that all its ranks share.
void SortCanonically(const Declaration& declaration, std::vector<std::size_t>& slots) {
  std::sort(slots.begin(), slots.end(), [&](std::size_t a, std::size_t b) {
    const HeldTensor& left = declaration.tensors()[a];
    const HeldTensor& right = declaration.tensors()[b];
    if (left.tensor.name != right.tensor.name) return left.tensor.name < right.tensor.name;
    return HeldRegionOf(left) < HeldRegionOf(right);
  });
}

// `writers` are those of the group that write, `rank` among them.
void DivideGroup(const Declaration& declaration, const std::vector<int>& writers, int rank,
                 std::vector<std::size_t> slots, SavePlan& plan) {
  SortCanonically(declaration, slots);
  std::vector<HeldRegion> held;
  held.reserve(slots.size());
  for (const std::size_t slot : slots) {
    const HeldTensor& one = declaration.tensors()[slot];
    held.push_back({.region = HeldRegionOf(one),
                    .element_size = ElementSize(one.tensor),
                    .chunk_size_bytes = one.tensor.chunk_size_bytes});
  }
  const auto mine = static_cast<std::size_t>(
      std::lower_bound(writers.begin(), writers.end(), rank) - writers.begin());
  for (Piece& piece : DivideEvenly(held, writers.size())) {
    if (piece.holder == mine) {
      plan.pieces.push_back({slots[piece.held_index], std::move(piece.region)});
    }
  }
}

void SortPieces(const Declaration& declaration, std::vector<PlannedPiece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [&](const PlannedPiece& a, const PlannedPiece& b) {
    const TensorSpec& left = declaration.tensors()[a.slot].tensor;
    const TensorSpec& right = declaration.tensors()[b.slot].tensor;
    return std::tie(left.group, left.name, a.region) < std::tie(right.group, right.name, b.region);
  });
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
  SlotsByGroup groups;
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    const HeldTensor& held = declaration.tensors()[slot];
    if (!held.replicas.empty()) {
      SEALPOINT_RETURN_IF_ERROR(
          CheckReplicas(held.replicas, rank, size).AtTensor(held.tensor.name));
    }
    if (!Writes(writer_ranks, rank)) continue;
    if (IsEmpty(held.tensor)) {
      plan.empty_slots.push_back(slot);
    } else if (held.replicas.empty()) {
      plan.pieces.push_back({slot, HeldRegionOf(held)});
    } else {
      groups[held.replicas].push_back(slot);
    }
  }
  for (auto& [replicas, slots] : groups) {
    std::vector<int> writers;
    std::copy_if(replicas.begin(), replicas.end(), std::back_inserter(writers),
                 [&](int replica) { return Writes(writer_ranks, replica); });
    DivideGroup(declaration, writers, rank, std::move(slots), plan);
  }
  SortPieces(declaration, plan.pieces);
  for (const PlannedPiece& piece : plan.pieces) {
    plan.tensor_bytes +=
        piece.region.element_count() * ElementSize(declaration.tensors()[piece.slot].tensor);
  }
  return plan;
}

}  // namespace sealpoint::internal
