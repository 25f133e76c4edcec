// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_
#define SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_

#include <cstdint>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/state_writer.h"
#include "sealpoint/declaration.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// InvalidArgument if memory is missing, or the declaration changed after the sources were made.
Status CheckSources(const Sources& sources);

// Gives the writer what this rank writes: the shards of the plan, empty tensors and all objects.
// When it returns, the sources may change: everything was copied, device memory too.
// Preconditions: CheckSources passed; the plan is that of the declaration.
Status WriteSources(const SaverOptions& options, StateWriter& writer, const SavePlan& plan,
                    const Sources& sources);

// The number of staging buffers that hold all of it at once.
std::uint64_t BuffersFor(const EngineParts& engine, const SaverOptions& options,
                         const SavePlan& plan, const Sources& sources);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_
