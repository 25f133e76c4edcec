// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tools/ckpt-inspect/checkpoint_view.h"
#include "tools/ckpt-inspect/plan.h"

namespace sealpoint::tools {

// One line "label value".
void PrintFact(std::string_view label, std::string_view value);

// For people, in 80 columns.
void PrintCheckpoint(const CheckpointView& view, std::optional<std::size_t> depth_max);
// One tensor with its shards. Errors: NotFound.
Status PrintTensor(const Checkpoint& checkpoint, const std::string& name);
void PrintSeries(const SeriesView& view);
void PrintPlan(const Checkpoint& checkpoint, const PlanView& view);

// The same facts for programs.
void PrintCheckpointJson(const CheckpointView& view);
Status PrintTensorJson(const Checkpoint& checkpoint, const std::string& name);
void PrintSeriesJson(const SeriesView& view);
void PrintPlanJson(const Checkpoint& checkpoint, const PlanView& view);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_H_
