// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_REUSE_H_
#define SEALPOINT_LIB_SAVER_REUSE_H_

#include <memory>
#include <vector>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/learned_frozen.h"
#include "lib/saver/plan_agreement.h"
#include "sealpoint/declaration.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

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

// As the options say. Borrows its arguments.
std::unique_ptr<Reuse> MakeReuse(pipeline::EngineParts& engine, const SaverOptions& options);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_REUSE_H_
