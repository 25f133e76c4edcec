// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/write_sources.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/staging_estimate.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {

Status CheckSources(const Sources& sources) {
  const Declaration& declaration = sources.declaration();
  if (sources.tensors().size() != declaration.tensors().size() ||
      sources.objects().size() != declaration.objects().size()) {
    return InvalidArgument("the declaration changed after its sources were made");
  }
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    const HeldTensor& held = declaration.tensors()[slot];
    if (!IsEmpty(held.tensor) && !sources.tensors()[slot]) {
      return InvalidArgument("no memory is bound").AtTensor(held.tensor.name);
    }
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    if (!sources.objects()[i]) {
      return InvalidArgument("no bytes are bound").AtObject(declaration.objects()[i].name);
    }
  }
  return {};
}

Status WriteSources(EngineParts& engine, const SaverOptions& options, BlobWriterImpl& writer,
                    const SavePlan& plan, const Sources& sources) {
  // How many buffers are in use at once depends on timing. All that a save may use are mapped in
  // the first save, so that no later one allocates.
  StagingPool& pool = *engine.pool;
  SEALPOINT_RETURN_IF_ERROR(pool.Reserve(plan.tensor_bytes / pool.buffer_size_bytes() + 1));
  writer.DeferCopies();
  if (options.check_device_copies) writer.CheckCopies();
  const Declaration& declaration = sources.declaration();
  for (const PlannedShard& shard : plan.shards) {
    const HeldTensor& held = declaration.tensors()[shard.slot];
    MemoryView view = *sources.tensors()[shard.slot];
    Region region = HeldRegionOf(held);
    if (view.is_dense()) {
      view.data += (shard.run.begin - region.run.begin) * ElementSize(held.tensor);
      view.size_bytes = shard.run.size() * ElementSize(held.tensor);
    }
    region.run = shard.run;
    SEALPOINT_RETURN_IF_ERROR(writer.Add(held.tensor, region, view));
  }
  for (const std::size_t slot : plan.empty_slots) {
    SEALPOINT_RETURN_IF_ERROR(writer.AddEmpty(declaration.tensors()[slot].tensor));
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    const HeldObject& object = declaration.objects()[i];
    SEALPOINT_RETURN_IF_ERROR(
        writer.AddObject(object.name, object.media_type, *sources.objects()[i], object.codec));
  }
  return writer.AwaitCopies();
}

std::uint64_t BuffersFor(const EngineParts& engine, const SaverOptions& options,
                         const SavePlan& plan, const Sources& sources) {
  StagingEstimate room(options.blob_size_max_bytes, engine.pool->buffer_size_bytes());
  const Declaration& declaration = sources.declaration();
  for (const PlannedShard& shard : plan.shards) {
    const TensorSpec& tensor = declaration.tensors()[shard.slot].tensor;
    room.AddShard(tensor, (shard.run.end - shard.run.begin) * ElementSize(tensor));
  }
  for (const std::size_t slot : plan.empty_slots) {
    room.AddEmpty(declaration.tensors()[slot].tensor);
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    const HeldObject& object = declaration.objects()[i];
    room.AddObject(object.name, object.media_type, sources.objects()[i]->size());
  }
  return room.buffer_count();
}

}  // namespace sealpoint::internal
