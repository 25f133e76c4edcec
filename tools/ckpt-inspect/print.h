// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_H_

#include <string>
#include <vector>

#include "tools/ckpt-inspect/checkpoint_view.h"
#include "tools/ckpt-inspect/options.h"
#include "tools/ckpt-inspect/plan.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// For people, in 80 columns or those of the terminal. Errors: those of reading the tables, with
// --long.
Status PrintCheckpoint(const CheckpointView& view, const Options& options);
// Tensors that match, with their shards. Errors: NotFound, those of reading the tables.
Status PrintTensors(const Checkpoint& checkpoint, const std::vector<std::string>& patterns);
void PrintSeries(const SeriesView& view);
void PrintPlan(const Checkpoint& checkpoint, const PlanView& view);

// The same facts for programs. After an error the document is not ended.
Status PrintCheckpointJson(const CheckpointView& view, const Options& options, JsonWriter& json);
Status PrintTensorsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json);
void PrintSeriesJson(const SeriesView& view, JsonWriter& json);
void PrintPlanJson(const Checkpoint& checkpoint, const PlanView& view, JsonWriter& json);

// "bf16"; "#300 2 B" if the dtype is not registered.
std::string DTypeText(const TensorInfo& tensor);
// name, dtype, shape and sizes.
void WriteTensor(JsonWriter& json, const TensorInfo& tensor);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_PRINT_H_
