// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_LEARNED_FROZEN_H_
#define SEALPOINT_LIB_SAVER_LEARNED_FROZEN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/save_plan.h"
#include "sealpoint/declaration.h"
#include "sealpoint/digest.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Prefix that groups of a declaration must not have while the saver learns.
inline constexpr std::string_view kLearnedGroupPrefix = "sealpoint.learned.";

// A plan with its learned shards in separate groups after all others.
struct GroupedPlan {
  std::shared_ptr<const SavePlan> plan{};
  std::vector<Digest> learned{};  // digests of the learned shards, the last ones of the plan
};

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

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_LEARNED_FROZEN_H_
