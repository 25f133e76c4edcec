// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_LS_PLAN_H_
#define SEALPOINT_TOOLS_CKPT_LS_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/placement.h"

namespace sealpoint::tools::ls {

struct PlanOptions {
  std::string mesh;  // "data=4,tensor=2"
  std::vector<std::string>
      places;  // "PATTERN=RULE, RULE"; of those that fit a name the last counts
};

// What one rank would read.
struct RankPlan {
  std::vector<std::uint32_t> coordinates;
  PlanSummary summary;
};

// What the ranks of a mesh would read of a checkpoint. Which payload that is, is in the tables; no
// payload is read.
struct PlanView {
  // The wanted mesh, and after it the axes of the stored placements that it lacks, of one rank
  // each.
  Mesh mesh;
  std::vector<RankPlan> ranks;
  PlanSummary alone;     // sums of all ranks, as if each read for itself
  PlanSummary together;  // as if one process read what any rank wants, each chunk once
  // How many tensors have a placement as stored, by option, or none (whole on every rank).
  std::size_t stored_count = 0;
  std::size_t given_count = 0;
  std::size_t whole_count = 0;
  std::vector<std::string> notes;
};

// More ranks than this are refused: a table of them helps nobody.
inline constexpr int kPlanRanksMax = 1 << 14;

// Errors: InvalidArgument for options that are wrong or do not fit the checkpoint; those of
// Checkpoint::Plan.
Result<PlanView> ViewPlan(const Checkpoint& checkpoint, const PlanOptions& options);

}  // namespace sealpoint::tools::ls

#endif  // SEALPOINT_TOOLS_CKPT_LS_PLAN_H_
