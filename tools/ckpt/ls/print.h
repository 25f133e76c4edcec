// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_LS_PRINT_H_
#define SEALPOINT_TOOLS_CKPT_LS_PRINT_H_

#include <string>
#include <vector>

#include "sealpoint/interop.h"
#include "tools/ckpt/ls/checkpoint_view.h"
#include "tools/ckpt/ls/options.h"
#include "tools/ckpt/ls/plan.h"
#include "tools/common/json.h"

namespace sealpoint::tools::ls {

// For people, in 80 columns or those of the terminal. Errors: those of reading the tables, with
// --long.
Status PrintCheckpoint(const CheckpointView& view, const Options& options);
// Tensors that match, with their shards. Errors: NotFound, those of reading the tables.
Status PrintTensors(const Checkpoint& checkpoint, const std::vector<std::string>& patterns);
void PrintSeries(const SeriesView& view);
void PrintPlan(const Checkpoint& checkpoint, const PlanView& view);

// The same facts for programs. The caller ends the document.
Status PrintCheckpointJson(const CheckpointView& view, const Options& options, JsonWriter& json);
Status PrintTensorsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json);
void PrintSeriesJson(const SeriesView& view, JsonWriter& json);
void PrintPlanJson(const Checkpoint& checkpoint, const PlanView& view, JsonWriter& json);

// "bf16"; "#300 2 B" if the dtype is not registered.
std::string DTypeText(const TensorInfo& tensor);
// name, dtype, shape and sizes.
void WriteTensor(JsonWriter& json, const TensorInfo& tensor);
// One line each.
void PrintAttributes(const Attributes& attributes);

// Prints elements of the tensors that Options::patterns name, in row-major order of Options::box;
// all of them, or the first 256 of each tensor and how many were left out. What is printed was
// verified before. Errors: NotFound, InvalidArgument (box), those of Checkpoint::Read.
Status PrintValues(const Checkpoint& checkpoint, const Options& options);
Status PrintValuesJson(const Checkpoint& checkpoint, const Options& options, JsonWriter& json);

// Writes the verified bytes of the one object that matches to standard output, and nothing else.
// Errors: NotFound, InvalidArgument (several match; bytes that are no text would go to a terminal),
// those of Checkpoint::ReadObject.
Status WriteObject(const Checkpoint& checkpoint, const std::vector<std::string>& patterns);

// Names, media types and sizes of all objects that match. Errors: NotFound.
Status PrintObjectsJson(const Checkpoint& checkpoint, const std::vector<std::string>& patterns,
                        JsonWriter& json);

void WriteObject(JsonWriter& json, const ObjectInfo& object);

// A checkpoint of another format.
void PrintForeign(const ForeignCheckpoint& state, const std::vector<ForeignValue>& values);
void PrintForeignJson(const ForeignCheckpoint& state, const std::vector<ForeignValue>& values,
                      JsonWriter& json);

}  // namespace sealpoint::tools::ls

#endif  // SEALPOINT_TOOLS_CKPT_LS_PRINT_H_
