// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_REUSE_H_
#define SEALPOINT_LIB_SAVER_REUSE_H_

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/plan_agreement.h"
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

// True for a group that the options name.
bool IsFrozen(const SaverOptions& options, std::string_view group);
// True if blobs of an older checkpoint may be linked.
bool MayLink(const SaverOptions& options);

// Divides this rank's plan into blobs that a save may link and others. This base links none. The
// kind is chosen once per saver. Nothing here is collective.
class Reuse {
 public:
  Reuse() = default;
  virtual ~Reuse() = default;
  Reuse(const Reuse&) = delete;
  Reuse& operator=(const Reuse&) = delete;

  // The plan as this rank writes it. Errors: InvalidArgument (a reserved group), Device.
  virtual Result<GroupedPlan> Group(const LocalPlan& local_plan, const Sources& sources);
  // Groups of that plan that may be linked. Errors: Device.
  virtual Result<std::vector<FrozenGroup>> FindGroups(const GroupedPlan& grouped,
                                                      const Sources& sources);
};

// The plan without the shards of these groups.
SavePlan WithoutGroups(const SavePlan& plan, const Declaration& declaration,
                       const std::set<std::string>& groups);

// As the options say. Borrows its arguments.
std::unique_ptr<Reuse> MakeReuse(pipeline::EngineParts& engine, const SaverOptions& options);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_REUSE_H_
