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

// What the groups of a declaration may not begin with while the saver learns.
inline constexpr std::string_view kLearnedGroupPrefix = "sealpoint.learned.";

// A plan whose learned shards are in groups of their own, behind all others.
struct GroupedPlan {
  std::shared_ptr<const SavePlan> plan{};
  std::vector<Digest> learned{};  // what the learned shards hold, in the order of the plan
};

// Which shards of this rank's plan are found not to change (SaverOptions::learn_frozen). Local, and
// needs no agreement: which blobs a shard goes to changes nothing of what the other ranks write, so
// ranks may learn differently. Keeps 24 bytes per shard.
class LearnedFrozen {
 public:
  // Before a save writes: digests what was learned, and at a look everything else, too, and groups
  // the plan accordingly. A plan that is grouped as in the call before is not made anew. All is
  // forgotten if `declaration`, the digest of that of `sources`, is another one than before.
  // Errors: InvalidArgument (a group that has such a name), Device.
  Result<GroupedPlan> Look(pipeline::EngineParts& engine, const SaverOptions& options,
                           const Digest& declaration, const std::shared_ptr<const SavePlan>& plan,
                           const Sources& sources);

 private:
  struct Known {
    Digest content{};
    bool is_known = false;      // what it held
    bool is_declared = false;   // of a frozen group of the declaration: not looked at
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
