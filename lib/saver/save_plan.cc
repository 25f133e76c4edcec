// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/replicas.h"
#include "lib/writer/slot_facts.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {
namespace {

// What planning looks at of a slot. A declaration is large, and its names lie in another order than
// its slots: it is gone through once, and this is kept.
struct Slot {
  static constexpr std::size_t kAlone = ~std::size_t{0};

  HeldRun held{};
  bool is_empty = false;         // the tensor
  std::size_t holders = kAlone;  // in Survey::holders
  std::size_t group = 0;         // in Survey::groups
  Run mine{};                    // what this rank writes
};

// Numbers of equal values in the order in which they came; neighbours are mostly equal.
template <typename Value>
class Numbering {
 public:
  std::size_t NumberOf(const Value& value) {
    if (last_ == nullptr || last_->first != value) {
      last_ = &*numbers_.emplace(value, numbers_.size()).first;
    }
    return last_->second;
  }
  const std::map<Value, std::size_t>& numbers() const { return numbers_; }

 private:
  std::map<Value, std::size_t> numbers_;
  const std::pair<const Value, std::size_t>* last_ = nullptr;
};

struct Survey {
  std::vector<Slot> slots{};              // of the declaration
  Numbering<std::vector<int>> holders{};  // the replica groups
  Numbering<std::string_view> groups{};   // which blobs are made for
};

Status CheckReplicas(const std::vector<int>& replicas, int rank, int size) {
  if (!std::binary_search(replicas.begin(), replicas.end(), rank)) {
    return InvalidArgument("rank ", rank, " declares replicas but does not list itself");
  }
  if (replicas.back() >= size) {
    return InvalidArgument("replica rank ", replicas.back(), " is not below ", size, ", the ranks");
  }
  return Status();
}

Result<Survey> SurveyOf(const Declaration& declaration, int rank, int size) {
  Survey survey;
  survey.slots.reserve(declaration.tensors().size());
  for (std::size_t i = 0; i < declaration.tensors().size(); ++i) {
    const HeldTensor& held = declaration.tensors()[i];
    const SlotFacts& facts = declaration.facts()[i];
    Slot slot{.held = {.run = facts.run,
                       .element_size = facts.element_size,
                       .chunk_size_bytes = facts.chunk_size_bytes},
              .is_empty = facts.is_empty,
              .group = survey.groups.NumberOf(held.tensor.group)};
    if (!held.replicas.empty()) {
      SEALPOINT_RETURN_IF_ERROR(
          CheckReplicas(held.replicas, rank, size).AtTensor(held.tensor.name));
      slot.holders = survey.holders.NumberOf(held.replicas);
    }
    if (slot.holders == Slot::kAlone) slot.mine = slot.held.run;
    survey.slots.push_back(slot);
  }
  return survey;
}

// By tensor name, then region: the order that all ranks of a replica group share.
std::vector<std::size_t> CanonicalOrder(const Declaration& declaration) {
  std::vector<std::size_t> order;
  order.reserve(declaration.tensors().size());
  declaration.ForEachTensor([&](std::span<const std::size_t> slots) {
    const auto first = static_cast<std::ptrdiff_t>(order.size());
    order.insert(order.end(), slots.begin(), slots.end());
    if (slots.size() == 1) return;
    std::sort(order.begin() + first, order.end(), [&](std::size_t a, std::size_t b) {
      return HeldRegionOf(declaration.tensors()[a]) < HeldRegionOf(declaration.tensors()[b]);
    });
  });
  return order;
}

// `slots` are those of one replica group in canonical order, `writers` those of its ranks that
// write, `rank` among them.
void DivideGroup(std::span<const std::size_t> slots, const std::vector<int>& writers, int rank,
                 Survey& survey) {
  std::vector<HeldRun> held;
  held.reserve(slots.size());
  for (const std::size_t slot : slots) held.push_back(survey.slots[slot].held);
  const auto mine = static_cast<std::size_t>(
      std::lower_bound(writers.begin(), writers.end(), rank) - writers.begin());
  for (const Piece& piece : DivideEvenly(held, writers.size())) {
    if (piece.holder == mine) survey.slots[slots[piece.held_index]].mine = piece.run;
  }
}

void DivideReplicas(const std::vector<std::size_t>& order, std::span<const int> writer_ranks,
                    int rank, Survey& survey) {
  std::vector<std::vector<std::size_t>> slots_of(survey.holders.numbers().size());
  for (const std::size_t i : order) {
    const Slot& slot = survey.slots[i];
    if (!slot.is_empty && slot.holders != Slot::kAlone) slots_of[slot.holders].push_back(i);
  }
  for (const auto& [holders, number] : survey.holders.numbers()) {
    std::vector<int> writers;
    std::copy_if(holders.begin(), holders.end(), std::back_inserter(writers),
                 [&](int holder) { return Writes(writer_ranks, holder); });
    DivideGroup(slots_of[number], writers, rank, survey);
  }
}

SavePlan Collect(const std::vector<std::size_t>& order, const Survey& survey) {
  SavePlan plan;
  std::vector<std::vector<PlannedPiece>> pieces_of(survey.groups.numbers().size());
  for (const std::size_t i : order) {
    const Slot& slot = survey.slots[i];
    if (slot.is_empty) plan.empty_slots.push_back(i);
    if (slot.mine.size() == 0) continue;
    pieces_of[slot.group].push_back({i, slot.mine});
    plan.tensor_bytes += slot.mine.size() * slot.held.element_size;
  }
  for (const auto& [group, number] : survey.groups.numbers()) {
    const std::vector<PlannedPiece>& pieces = pieces_of[number];
    plan.pieces.insert(plan.pieces.end(), pieces.begin(), pieces.end());
  }
  return plan;
}

}  // namespace

bool Writes(std::span<const int> writer_ranks, int rank) {
  return writer_ranks.empty() || std::binary_search(writer_ranks.begin(), writer_ranks.end(), rank);
}

Result<SavePlan> MakeSavePlan(const Declaration& declaration, int rank, int size,
                              std::span<const int> writer_ranks) {
  SEALPOINT_ASSIGN_OR_RETURN(Survey survey, SurveyOf(declaration, rank, size));
  if (!Writes(writer_ranks, rank)) return SavePlan();
  const std::vector<std::size_t> order = CanonicalOrder(declaration);
  DivideReplicas(order, writer_ranks, rank, survey);
  return Collect(order, survey);
}

}  // namespace sealpoint::internal
