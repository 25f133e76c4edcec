// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_PLAN_AGREEMENT_H_
#define SEALPOINT_LIB_SAVER_PLAN_AGREEMENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/comm/same_call.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/saver/compare_replicas.h"
#include "lib/saver/find_replicas.h"
#include "lib/saver/save_plan.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/digest.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// What this rank contributes to the agreement on a plan.
struct LocalPlan {
  Digest declaration{};
  bool is_changed = false;  // since the last agreement
  std::shared_ptr<const SavePlan> plan{};
};

// What the ranks reduce to the maximum before they agree on anything else.
struct PlanFlags {
  bool is_changed = false;  // the declaration
  bool is_short_of_memory = false;
  bool may_be_saved = false;  // something is declared, or need not be
};

// One save on its way to a plan. Borrows its call.
struct Proposal {
  const SaveTarget& target;
  const SaveOptions& options;
  const Sources& held;  // of the caller
  // Reserves the memory to stage a plan, if the save is to be staged. Returns true if this rank is
  // short of it. An error becomes that of the plan.
  std::function<Result<bool>(const LocalPlan&, const Sources&)> reserve{};

  // PlanAgreement fills these in.
  Result<LocalPlan> local = LocalPlan();
  std::optional<Sources> selected{};  // instead of `held`, if the saver finds replicas
  PlanFlags any{};                    // of all ranks

  const Sources& sources() const { return selected ? *selected : held; }
};

// The plan of the last declaration that all ranks agreed on, and how they come to the next one. A
// saver keeps it from save to save.
class PlanAgreement {
 public:
  // Borrows everything.
  PlanAgreement(pipeline::EngineParts& engine, Communicator& comm, const SaverOptions& options)
      : engine_(engine), comm_(comm), options_(options) {}

  // Local. InvalidArgument if SaveOptions::declarations is that of the save before, but this rank
  // declares something else.
  Status CheckDeclarations(const SaveOptions& options, const Sources& held) const;
  // Collective: the first exchange of a save. `local_status`: this rank's outcome so far. An
  // error of any rank becomes the error of all. No exchange if the caller compared the call
  // (SaveOptions::declarations); an error of this rank is then still to be told, by Agree or a step
  // before it.
  Status Begin(std::string_view kind, const Status& local_status, Proposal& proposal);
  // Collective. Finds replicas, checks the declarations and compares replicas, as the options say.
  Status Agree(Proposal& proposal);

 private:
  // Local arithmetic.
  Result<LocalPlan> MakeFirstPlan(const Status& local_status, const Sources& held) const;
  Result<LocalPlan> MakePlan(const Declaration& declaration) const;
  // The flags of a proposal; reserves memory for it.
  static PlanFlags FlagsOf(Proposal& proposal);
  // The rest are collective.
  Status TakeMaxima(const comm::CallFlags& maxima, Proposal& proposal);
  Status SelectReplicas(Proposal& proposal);
  Result<Sources> FindReplicas(const Proposal& proposal);
  Status AgreeOnPlan(const Proposal& proposal);
  Status CompareReplicas(const Proposal& proposal);

  pipeline::EngineParts& engine_;
  Communicator& comm_;
  const SaverOptions& options_;
  // The agreed plan and its key. One entry only: the agreement was on declarations of the
  // same time.
  std::optional<Digest> planned_for_;
  std::shared_ptr<const SavePlan> plan_;
  // If the saver finds replicas: the result of the last search, and its key.
  std::optional<Digest> searched_for_;
  std::optional<Digest> searched_among_;  // SaveOptions::declarations of that search
  std::optional<FoundReplicas> found_;
  std::optional<ItemsByHolders> shared_;  // to compare; absent if plan or replicas changed
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_PLAN_AGREEMENT_H_
