// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_
#define SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/state_writer.h"
#include "sealpoint/declaration.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// InvalidArgument if memory is missing, or the declaration changed after the sources were made.
Status CheckSources(const Sources& sources);

// The name that the blobs of a learned group go by.
std::string LearnedGroupName(std::uint32_t number);

// The tensor of a planned shard, with the group that this is written to.
void CopySpec(const writer::DeclarationSummary& summary, const PlannedShard& shard,
              TensorSpec& tensor);

// A planned shard and its position in memory.
struct ShardSource {
  Region region{};
  MemoryView view{};
};
ShardSource SourceOf(const Sources& sources, const PlannedShard& shard);

// InvalidArgument if the data of the base cannot be that of `sources`.
Status CheckBase(const SaveOptions& options, const Sources& sources);

// Passes this rank's data to the writer: the shards of the plan, empty tensors and all objects.
// When it returns, everything was copied, including device memory, and the sources may change.
// Preconditions: CheckSources passed; the plan is that of the declaration.
Status WriteSources(const SaverOptions& options, writer::StateWriter& writer, const SavePlan& plan,
                    const Sources& sources, const std::optional<SaveBase>& base);

// The number of staging buffers that hold all of it at once, and parts of uploads, of that size if
// it is not 0.
std::uint64_t BuffersFor(const pipeline::EngineParts& engine, const SaverOptions& options,
                         const SavePlan& plan, const Sources& sources,
                         std::uint64_t part_size_bytes);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_
