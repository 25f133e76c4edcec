// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_
#define SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_

#include <cstdint>
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

// What a planned shard is, and where it is in memory.
struct ShardSource {
  Region region{};
  MemoryView view{};
};
ShardSource SourceOf(const Sources& sources, const PlannedShard& shard);

// Gives the writer what this rank writes: the shards of the plan, empty tensors and all objects.
// When it returns, the sources may change: everything was copied, device memory too.
// Preconditions: CheckSources passed; the plan is that of the declaration.
Status WriteSources(const SaverOptions& options, writer::StateWriter& writer, const SavePlan& plan,
                    const Sources& sources);

// The number of staging buffers that hold all of it at once, and parts of uploads, of that size if
// it is not 0.
std::uint64_t BuffersFor(const pipeline::EngineParts& engine, const SaverOptions& options,
                         const SavePlan& plan, const Sources& sources,
                         std::uint64_t part_size_bytes);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_WRITE_SOURCES_H_
