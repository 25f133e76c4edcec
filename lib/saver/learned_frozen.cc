// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/learned_frozen.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/replica_digests.h"
#include "lib/saver/write_sources.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::saver {

Result<GroupedPlan> LearnedFrozen::Look(pipeline::EngineParts& engine, const SaverOptions& options,
                                        const Digest& declaration,
                                        const std::shared_ptr<const SavePlan>& plan,
                                        const Sources& sources) {
  if (declaration_ != declaration) {
    *this = LearnedFrozen();
    SEALPOINT_RETURN_IF_ERROR(Begin(options, *plan, sources));
    declaration_ = declaration;
  }
  SEALPOINT_ASSIGN_OR_RETURN(const bool is_changed, Compare(engine, *plan, sources));
  if (is_changed) {
    grouped_ = group_count_ == 0 ? nullptr : std::make_shared<const SavePlan>(MakeGrouped(*plan));
  }
  GroupedPlan grouped{.plan = grouped_ ? grouped_ : plan};
  for (std::uint32_t group = 1; group <= group_count_; ++group) {
    for (const Known& known : known_) {
      if (known.learned == group) grouped.learned.push_back(known.content);
    }
  }
  return grouped;
}

Status LearnedFrozen::Begin(const SaverOptions& options, const SavePlan& plan,
                            const Sources& sources) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(sources.declaration());
  for (const auto& [name, group] : summary.blob_groups()) {
    if (name.starts_with(kLearnedGroupPrefix)) {
      return InvalidArgument("a blob group is named ", name, ", expected no ", kLearnedGroupPrefix,
                             "… with SaverOptions::learn_frozen");
    }
  }
  known_.reserve(plan.shards.size());
  for (const PlannedShard& shard : plan.shards) {
    TensorSpec tensor;
    summary.held(shard.slot).CopyTo(tensor);
    known_.push_back({.is_declared = IsFrozen(options, tensor.group)});
  }
  return {};
}

// Saves 1, 2, 4, 8 ... look at everything, so that n saves cost a logarithm of n passes over what
// is trained, and what is frozen later is found, too.
Result<bool> LearnedFrozen::Compare(pipeline::EngineParts& engine, const SavePlan& plan,
                                    const Sources& sources) {
  const bool looks_at_all = std::has_single_bit(++save_count_);
  std::vector<std::size_t> numbers;
  std::vector<PlannedShard> shards;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (known_[i].is_declared || (known_[i].learned == 0 && !looks_at_all)) continue;
    numbers.push_back(i);
    shards.push_back(plan.shards[i]);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Digest> digests,
                             DigestShards(engine, sources, shards));
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(sources.declaration());
  bool has_left = false;
  std::vector<std::size_t> equal;
  std::uint64_t equal_bytes = 0;
  for (std::size_t j = 0; j < numbers.size(); ++j) {
    Known& known = known_[numbers[j]];
    const bool is_equal = known.is_known && known.content == digests[j];
    if (known.learned != 0 && !is_equal) {
      known.learned = 0;
      has_left = true;
    } else if (known.learned == 0 && is_equal) {
      equal.push_back(numbers[j]);
      equal_bytes += shards[j].run.size() * writer::ElementSize(summary.held(shards[j].slot).kind);
    }
    known.content = digests[j];
    known.is_known = true;
  }
  return Learn(equal, equal_bytes) || has_left;
}

// A file costs an inode and a sync in each save: little is not worth one.
bool LearnedFrozen::Learn(const std::vector<std::size_t>& equal, std::uint64_t bytes) {
  if (bytes < kLearnedSizeMin) return false;
  ++group_count_;
  for (const std::size_t number : equal) known_[number].learned = group_count_;
  return true;
}

SavePlan LearnedFrozen::MakeGrouped(const SavePlan& plan) const {
  SavePlan grouped = plan;
  for (std::size_t i = 0; i < known_.size(); ++i) grouped.shards[i].learned = known_[i].learned;
  std::ranges::stable_sort(grouped.shards, {}, &PlannedShard::learned);
  return grouped;
}

}  // namespace sealpoint::internal::saver
