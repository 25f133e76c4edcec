// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/reuse.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/saver/replica_digests.h"
#include "lib/saver/write_sources.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::saver {
namespace {

// Shards of a group follow each other.
void AddGroups(const Sources& sources, std::span<const PlannedShard> shards,
               std::span<const Digest> contents, std::vector<FrozenGroup>& groups) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(sources.declaration());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    FrozenGroup::ShardContent shard{.region = SourceOf(sources, shards[i]).region,
                                    .content = contents[i]};
    CopySpec(summary, shards[i], shard.tensor);
    if (groups.empty() || groups.back().name != shard.tensor.group) {
      groups.push_back({.name = shard.tensor.group});
    }
    groups.back().bytes += shards[i].run.size() * writer::ElementSize(shard.tensor);
    groups.back().shards.push_back(std::move(shard));
  }
}

// Shards of this rank's plan that were found not to change (SaverOptions::learn_frozen). Local, and
// needs no agreement: the blobs of a shard do not affect the other ranks' writes, so ranks may
// learn differently. Keeps 24 bytes per shard.
class LearnedFrozen {
 public:
  // Before a save writes: digests the learned shards, and at an inspection all other shards too,
  // and groups the plan accordingly. The plan of the previous call is reused if the grouping is the
  // same. Forgets everything if `declaration`, the digest of the sources' declaration, has changed.
  // Errors: InvalidArgument (a group has the reserved prefix), Device.
  Result<GroupedPlan> Look(pipeline::EngineParts& engine, const SaverOptions& options,
                           const Digest& declaration, const std::shared_ptr<const SavePlan>& plan,
                           const Sources& sources);

 private:
  struct Known {
    Digest content{};
    bool is_known = false;      // `content` is valid
    bool is_declared = false;   // in a frozen group of the declaration: not inspected
    std::uint32_t learned = 0;  // its group; 0: none
  };

  Status Begin(const SaverOptions& options, const SavePlan& plan, const Sources& sources);
  // True if a shard came to a group or left one.
  Result<bool> Compare(pipeline::EngineParts& engine, const SavePlan& plan, const Sources& sources);
  bool Learn(const std::vector<std::size_t>& equal, std::uint64_t bytes);
  SavePlan MakeGrouped(const SavePlan& plan) const;

  std::optional<Digest> declaration_{};
  std::uint64_t save_count_ = 0;
  std::uint32_t group_count_ = 0;  // one for each look that found something
  std::vector<Known> known_{};     // by position in the plan of the declaration
  std::shared_ptr<const SavePlan> grouped_{};
};

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

// Saves 1, 2, 4, 8 ... look at everything: n saves cost a logarithm of n passes over trained
// tensors, and tensors that are frozen later are found, too.
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
  if (bytes < kLearnedGroupSizeMinBytes) return false;
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

// Links the groups that the options name.
class DeclaredReuse : public Reuse {
 public:
  DeclaredReuse(pipeline::EngineParts& engine, const SaverOptions& options)
      : engine_(engine), options_(options) {}

  Result<std::vector<FrozenGroup>> FindGroups(const GroupedPlan& grouped,
                                              const Sources& sources) final;

 protected:
  pipeline::EngineParts& engine_;
  const SaverOptions& options_;
};

Result<std::vector<FrozenGroup>> DeclaredReuse::FindGroups(const GroupedPlan& grouped,
                                                           const Sources& sources) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(sources.declaration());
  const std::span<const PlannedShard> shards = grouped.plan->shards;
  const std::size_t learned_count = grouped.learned.size();
  std::vector<PlannedShard> declared;
  std::ranges::copy_if(shards.first(shards.size() - learned_count), std::back_inserter(declared),
                       [&](const PlannedShard& shard) {
                         return IsFrozen(options_, summary.held(shard.slot).kind.group);
                       });
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Digest> digests,
                             DigestShards(engine_, sources, declared));
  std::vector<FrozenGroup> groups;
  AddGroups(sources, declared, digests, groups);
  AddGroups(sources, shards.last(learned_count), grouped.learned, groups);
  return groups;
}

// Links shards that were found not to change, too.
class LearnedReuse final : public DeclaredReuse {
 public:
  using DeclaredReuse::DeclaredReuse;

  Result<GroupedPlan> Group(const LocalPlan& local_plan, const Sources& sources) override {
    return learned_.Look(engine_, options_, local_plan.declaration, local_plan.plan, sources);
  }

 private:
  LearnedFrozen learned_;
};

}  // namespace

bool IsFrozen(const SaverOptions& options, std::string_view group) {
  return std::ranges::find(options.frozen_groups, group) != options.frozen_groups.end();
}

bool MayLink(const SaverOptions& options) {
  return !options.frozen_groups.empty() || options.learn_frozen;
}

Result<GroupedPlan> Reuse::Group(const LocalPlan& local_plan, const Sources& /*sources*/) {
  return GroupedPlan{.plan = local_plan.plan};
}

Result<std::vector<FrozenGroup>> Reuse::FindGroups(const GroupedPlan& /*grouped*/,
                                                   const Sources& /*sources*/) {
  return std::vector<FrozenGroup>();
}

SavePlan WithoutGroups(const SavePlan& plan, const Declaration& declaration,
                       const std::set<std::string>& groups) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  SavePlan rest{.empty_slots = plan.empty_slots};
  TensorSpec tensor;
  for (const PlannedShard& shard : plan.shards) {
    CopySpec(summary, shard, tensor);
    if (groups.contains(tensor.group)) continue;
    rest.tensor_bytes += shard.run.size() * writer::ElementSize(tensor);
    rest.shards.push_back(shard);
  }
  return rest;
}

std::unique_ptr<Reuse> MakeReuse(pipeline::EngineParts& engine, const SaverOptions& options) {
  if (options.learn_frozen) return std::make_unique<LearnedReuse>(engine, options);
  if (MayLink(options)) return std::make_unique<DeclaredReuse>(engine, options);
  return std::make_unique<Reuse>();
}

}  // namespace sealpoint::internal::saver
