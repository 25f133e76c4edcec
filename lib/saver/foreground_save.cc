// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/foreground_save.h"

#include "lib/base/macros.h"
#include "lib/saver/write_sources.h"

namespace sealpoint::internal::saver {

Status ForegroundSave::Plan() {
  recorder_.Begin(Phase::kPlan);
  return plans_.Agree(proposal_);
}

Result<std::span<const FrozenGroup>> ForegroundSave::FindGroups(const Attempt& attempt) {
  SEALPOINT_ASSIGN_OR_RETURN(grouped_, reuse_.Group(*proposal_.local, proposal_.sources()));
  if (!attempt.parent_directory.empty()) {  // nothing is digested in vain
    SEALPOINT_ASSIGN_OR_RETURN(groups_, reuse_.FindGroups(grouped_, proposal_.sources()));
  }
  return std::span<const FrozenGroup>(groups_);
}

void ForegroundSave::Drop(const std::set<std::string>& linked) {
  plan_ = grouped_.plan;
  if (linked.empty()) return;
  plan_ = std::make_shared<const SavePlan>(
      WithoutGroups(*grouped_.plan, proposal_.sources().declaration(), linked));
}

Status ForegroundSave::Write(const SaveRun& run) {
  SEALPOINT_ASSIGN_OR_RETURN(writer_, run.CreateWriter());
  return WriteSources(options_, *writer_, *plan_, proposal_.sources());
}

}  // namespace sealpoint::internal::saver
