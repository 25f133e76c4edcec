// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/plan_agreement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/saver/check_declarations.h"
#include "lib/saver/save_call.h"
#include "lib/saver/stored_cuts.h"

namespace sealpoint::internal::saver {
namespace {

// Positions in comm::CallFlags.
enum : std::size_t { kHasFailed, kIsChanged, kIsShortOfMemory, kMayBeSaved };

comm::CallFlags Encode(const PlanFlags& flags, const Status& local_status) {
  comm::CallFlags encoded{};
  encoded[kHasFailed] = local_status.ok() ? 0 : 1;
  encoded[kIsChanged] = flags.is_changed ? 1 : 0;
  encoded[kIsShortOfMemory] = flags.is_short_of_memory ? 1 : 0;
  encoded[kMayBeSaved] = flags.may_be_saved ? 1 : 0;
  return encoded;
}

}  // namespace

Status PlanAgreement::CheckDeclarations(const SaveOptions& options, const Sources& held) const {
  if (options.declarations && options.declarations == searched_among_ &&
      searched_for_ != held.declaration().ComputeDigest()) {
    return InvalidArgument(
        "SaveOptions::declarations is unchanged, but the declaration of this rank has changed");
  }
  return {};
}

Result<LocalPlan> PlanAgreement::MakeFirstPlan(const Status& local_status,
                                               const Sources& held) const {
  SEALPOINT_RETURN_IF_ERROR(local_status);
  return options_.find_replicas ? Result<LocalPlan>(LocalPlan()) : MakePlan(held.declaration());
}

Result<LocalPlan> PlanAgreement::MakePlan(const Declaration& declaration) const {
  LocalPlan local_plan{.declaration = declaration.ComputeDigest()};
  local_plan.is_changed = planned_for_ != local_plan.declaration;
  if (!local_plan.is_changed) {
    local_plan.plan = plan_;
    return local_plan;
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      SavePlan plan,
      MakeSavePlan(declaration, comm_.rank(), comm_.size(), options_.writer_ranks,
                   options_.find_replicas && !options_.compare_replicas ? Division::kFirstRank
                                                                        : Division::kEven));
  local_plan.plan = std::make_shared<const SavePlan>(std::move(plan));
  return local_plan;
}

PlanFlags PlanAgreement::FlagsOf(Proposal& proposal) {
  PlanFlags flags;
  if (proposal.reserve) {
    flags.is_short_of_memory = true;  // also without a plan
    if (proposal.local.ok() && proposal.local->plan) {
      const auto is_short = proposal.reserve(*proposal.local, proposal.sources());
      if (!is_short.ok()) proposal.local = is_short.error();
      flags.is_short_of_memory = is_short.value_or(true);
    }
  }
  flags.is_changed = proposal.local.ok() && proposal.local->is_changed;
  const Declaration& declaration = proposal.sources().declaration();
  flags.may_be_saved = !declaration.tensors().empty() || !declaration.objects().empty() ||
                       proposal.options.allow_empty;
  return flags;
}

Status PlanAgreement::Begin(std::string_view kind, const Status& local_status, Proposal& proposal) {
  const SaveOptions& options = proposal.options;
  proposal.local = MakeFirstPlan(local_status, proposal.held);
  PlanFlags flags = FlagsOf(proposal);
  if (options_.find_replicas) {
    flags.is_changed = searched_for_ != proposal.held.declaration().ComputeDigest();
    if (options.declarations) {
      proposal.any = {.is_changed = searched_among_ != options.declarations};
      return {};
    }
  }
  const Status proposed = proposal.local.status();
  SEALPOINT_ASSIGN_OR_RETURN(
      const comm::CallFlags maxima,
      comm::BeginCall(comm_, CallOf(kind, options_, proposal.target, options),
                      Encode(flags, proposed), !proposed.ok()));
  return TakeMaxima(maxima, proposal);
}

Status PlanAgreement::TakeMaxima(const comm::CallFlags& maxima, Proposal& proposal) {
  if (maxima[kHasFailed] != 0) {
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, proposal.local.status()));
  }
  proposal.any = {.is_changed = maxima[kIsChanged] != 0,
                  .is_short_of_memory = maxima[kIsShortOfMemory] != 0,
                  .may_be_saved = maxima[kMayBeSaved] != 0};
  return {};
}

Status PlanAgreement::Agree(Proposal& proposal) {
  if (options_.find_replicas) SEALPOINT_RETURN_IF_ERROR(SelectReplicas(proposal));
  SEALPOINT_RETURN_IF_ERROR(AgreeOnPlan(proposal));
  if (options_.compare_replicas) SEALPOINT_RETURN_IF_ERROR(CompareReplicas(proposal));
  return {};
}

// The plan becomes known only now, so the flags are reduced once more.
Status PlanAgreement::SelectReplicas(Proposal& proposal) {
  SEALPOINT_ASSIGN_OR_RETURN(proposal.selected, FindReplicas(proposal));
  if (proposal.local.ok()) proposal.local = MakePlan(proposal.selected->declaration());
  const PlanFlags flags = FlagsOf(proposal);
  const comm::CallFlags local_flags = Encode(flags, proposal.local.status());
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> maxima,
                             comm_.AllReduceMax({local_flags.begin(), local_flags.end()}));
  comm::CallFlags any{};
  if (maxima.size() != any.size()) return MalformedMessage();
  std::copy(maxima.begin(), maxima.end(), any.begin());
  return TakeMaxima(any, proposal);
}

// If one rank's declaration changed, all search: its replicas may be on any of them. The result
// borrows from found_. A rank with an error of its own only takes part, and gets its sources back.
Result<Sources> PlanAgreement::FindReplicas(const Proposal& proposal) {
  const Declaration& held = proposal.held.declaration();
  if (proposal.any.is_changed) {
    searched_for_.reset();
    searched_among_.reset();
    shared_.reset();
    SEALPOINT_ASSIGN_OR_RETURN(found_,
                               internal::saver::FindReplicas(comm_, held, options_.writer_ranks));
    searched_for_ = held.ComputeDigest();
    searched_among_ = proposal.options.declarations;
  }
  if (!proposal.local.ok()) return proposal.held;
  return SelectSources(*found_, proposal.held);
}

// The flags say whether any declaration changed since the last agreement. Only then the
// declarations are checked, fast at first; only if that fails are they exchanged in full, to name
// the fault. Precondition: no rank's proposal is an error.
Status PlanAgreement::AgreeOnPlan(const Proposal& proposal) {
  if (!proposal.any.may_be_saved) {
    return InvalidArgument("no rank declares a tensor or an object; see SaveOptions::allow_empty");
  }
  if (!proposal.any.is_changed) return {};
  const LocalPlan& local_plan = *proposal.local;
  SEALPOINT_RETURN_IF_ERROR(CheckCutPatterns(comm_, options_, proposal.sources().declaration()));
  const Declaration& declaration = proposal.sources().declaration();
  SEALPOINT_ASSIGN_OR_RETURN(const bool agree,
                             FastCheckDeclarations(comm_, declaration, *local_plan.plan,
                                                   options_.writer_ranks, options_.limits));
  if (!agree) {
    SEALPOINT_RETURN_IF_ERROR(FullCheckDeclarations(comm_, declaration, *local_plan.plan,
                                                    options_.writer_ranks, options_.limits));
  }
  plan_ = local_plan.plan;
  planned_for_ = local_plan.declaration;
  shared_.reset();
  return {};
}

Status PlanAgreement::CompareReplicas(const Proposal& proposal) {
  if (!shared_) {
    shared_ = FindSharedItems(proposal.sources().declaration(),
                              found_ ? found_->shared_objects : SharedObjects());
  }
  return internal::saver::CompareReplicas(comm_, engine_, proposal.held, *shared_);
}

}  // namespace sealpoint::internal::saver
